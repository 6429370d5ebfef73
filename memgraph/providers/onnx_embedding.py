"""Run any ONNX sentence-embedding model from a folder, without network.

The folder contains ``tokenizer.json`` and the graph (`MODEL_FILES`), as sentence-transformers,
optimum and fastembed write them. The vector of a text is the mean of its token vectors, or the
first one if ``1_Pooling/config.json`` says so. It is cut to the configured dimensions and scaled
to norm 1. The files are not trusted: each is read once into memory, up to a limit, and
only these bytes are passed to the libraries, so that a graph cannot refer to other files.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from memgraph.errors import ExtraMissing, InvalidConfig, ProviderRejected, ProviderUnavailable
from memgraph.providers.embedding import checked, prepared

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

EXTRA: Final = "onnx"
MODEL_FILES: Final = ("model.onnx", "model_optimized.onnx", "onnx/model.onnx")
TOKENIZER: Final = "tokenizer.json"
MAX_MODEL_BYTES: Final = 2 * 1024**3
MAX_JSON_BYTES: Final = 64 * 1024**2
MAX_TOKENS: Final = 512
"""The maximum number of tokens of a text, whatever the model's files say."""
MAX_BATCH_TOKENS: Final = 16_384
UNREADABLE: Final = "onnx:unreadable"
_INPUTS: Final = frozenset({"input_ids", "attention_mask", "token_type_ids"})


class _Loaded(NamedTuple):
    session: Any
    tokenizer: Any
    inputs: frozenset[str]
    output: str
    first_token: bool


class OnnxEmbedding:
    """An ONNX embedding model; its files are read when its identity or a vector is first needed.

    Args:
        folder: the absolute path of the model.
        dimensions: the length of every vector, at most that of the model.
        batch_size: texts per run, >= 1.

    Raises:
        InvalidConfig: the path is not absolute.
    """

    name: ClassVar[str] = "onnx"

    def __init__(self, folder: Path, *, dimensions: int, batch_size: int) -> None:
        if not folder.is_absolute():
            raise InvalidConfig(
                "model_folder must be an absolute path for 'onnx'.", key="model_folder"
            )
        self.dimensions = dimensions
        self._folder, self._batch_size = folder, batch_size
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None
        self._model = ""

    @property
    def model(self) -> str:
        """The digest of the graph, the tokenizer and the pooling, with the dimensions.

        It is `UNREADABLE` if the model cannot be read; ``embed`` then raises the reason.
        """
        with self._lock:
            if not self._model:
                try:
                    self._model = self._identity(*_files(self._folder))
                except ProviderRejected:
                    return UNREADABLE
            return self._model

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See `EmbeddingProvider.embed`.

        Raises:
            ExtraMissing: onnxruntime is not installed.
            ProviderRejected: the model's files cannot be used; ``details['file']`` names one.
            ProviderUnavailable: the run failed.
            ProviderAnswerInvalid: the model did not return a table of finite numbers.
        """
        import numpy as np

        loaded = self._load()
        out = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        inputs = [(at, prepared(text)) for at, text in enumerate(texts) if text.strip()]
        encoded = loaded.tokenizer.encode_batch([text for _, text in inputs])
        tokens = sorted(
            (len(encoding.ids), at, encoding)
            for (at, _), encoding in zip(inputs, encoded, strict=True)
        )
        start = 0
        while start < len(tokens):
            # Batch texts of similar length, to reduce padding.
            end = start + 1
            while (
                end < len(tokens)
                and end - start < self._batch_size
                and (end - start + 1) * tokens[end][0] <= MAX_BATCH_TOKENS
            ):
                end += 1
            batch = tokens[start:end]
            vectors = _run(loaded, [encoding for _, _, encoding in batch])
            if vectors.ndim == 2 and vectors.shape[1] > self.dimensions:
                vectors = vectors[:, : self.dimensions]
            out[[at for _, at, _ in batch]] = checked(vectors, len(batch), self.dimensions)
            start = end
        return out

    def _load(self) -> _Loaded:
        with self._lock:
            if self._loaded is None:
                graph, tokenizer, pooling, length = _files(self._folder)
                self._model = self._identity(graph, tokenizer, pooling, length)
                self._loaded = _loaded(graph, tokenizer, pooling, length)
            return self._loaded

    def _identity(self, graph: bytes, tokenizer: bytes, first_token: bool, length: int) -> str:
        parts = hashlib.sha256(graph).digest() + hashlib.sha256(tokenizer).digest()
        digest = hashlib.sha256(parts + f"{first_token} {length}".encode()).hexdigest()
        return f"onnx:{digest[:16]}:{self.dimensions}"


def _files(folder: Path) -> tuple[bytes, bytes, bool, int]:
    """Return the graph, the tokenizer, True for first-token pooling, and the maximum tokens."""
    tokenizer = _read(folder, TOKENIZER, MAX_JSON_BYTES)
    graph = next(
        (data_ for name in MODEL_FILES if (data_ := _read(folder, name, MAX_MODEL_BYTES, False))),
        b"",
    )
    if tokenizer is None or not graph:
        raise _unusable(MODEL_FILES[0], "is missing or empty")
    pooling = _json(folder, "1_Pooling/config.json")
    lengths = (
        _json(folder, "sentence_bert_config.json").get("max_seq_length"),
        _json(folder, "tokenizer_config.json").get("model_max_length"),
    )
    limits = [length for length in lengths if isinstance(length, int) and length >= 1]
    first = pooling.get("pooling_mode_cls_token") is True
    return graph, tokenizer, first, min([*limits[:1], MAX_TOKENS])


def _read(folder: Path, name: str, max_bytes: int, required: bool = True) -> bytes | None:
    """Return the bytes of a regular file; None if it is missing and not ``required``.

    Links are followed, because caches of models link files into their folders.
    """
    try:
        # Non-blocking, because opening a pipe would wait for its writer.
        descriptor = os.open(folder / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        if required:
            raise _unusable(name, "is missing") from None
        return None
    except (OSError, ValueError):
        raise _unusable(name, "cannot be read") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _unusable(name, "is not a regular file")
    with os.fdopen(descriptor, "rb") as file:
        try:
            data = file.read(max_bytes + 1)
        except OSError:
            raise _unusable(name, "cannot be read") from None
    if len(data) > max_bytes:
        raise _unusable(name, "is too large")
    return data


def _json(folder: Path, name: str) -> dict[str, Any]:
    data = _read(folder, name, MAX_JSON_BYTES, required=False)
    try:
        value = {} if data is None else json.loads(data)
    except (ValueError, RecursionError):
        raise _unusable(name, "is not valid JSON") from None
    return value if isinstance(value, dict) else {}


def _loaded(graph: bytes, tokenizer: bytes, first_token: bool, length: int) -> _Loaded:
    try:
        import onnxruntime
        from tokenizers import Tokenizer
    except ImportError as error:
        raise ExtraMissing.of(
            f"ONNX models need onnxruntime, but {error.name or EXTRA} is not installed",
            extra=EXTRA,
        ) from error
    try:
        words = Tokenizer.from_buffer(tokenizer)
        words.no_padding()
        words.enable_truncation(length)
        # Treat "[SEP]" in a text as ordinary text.
        words.encode_special_tokens = True
    except Exception:  # noqa: BLE001 - the library raises bare Exceptions
        raise _unusable(TOKENIZER, "is not a valid tokenizer") from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    # No busy waiting: a recall embeds a single text, and other work needs the processor.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except Exception:  # noqa: BLE001 - the library has a dozen error classes, with paths in them
        raise _unusable(MODEL_FILES[0], "is not a graph that can be run") from None
    inputs = frozenset(item.name for item in session.get_inputs())
    outputs = [output.name for output in session.get_outputs()]
    if not {"input_ids"} <= inputs <= _INPUTS or not outputs:
        raise _unusable(MODEL_FILES[0], "needs inputs other than token ids")
    sentence_output = "sentence_embedding"
    output = sentence_output if sentence_output in outputs else outputs[0]
    return _Loaded(session, words, inputs, output, first_token)


def _run(loaded: _Loaded, batch: Sequence[Any]) -> NDArray[np.float32]:
    """Return the unscaled vectors of texts, of shape (n, the model's dimensions)."""
    import numpy as np

    size = max(max(len(encoding.ids) for encoding in batch), 1)
    ids, mask, type_ids = np.zeros((3, len(batch), size), dtype=np.int64)
    for row, encoding in enumerate(batch):
        count = len(encoding.ids)
        ids[row, :count], mask[row, :count], type_ids[row, :count] = (
            encoding.ids,
            1,
            encoding.type_ids,
        )
    feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": type_ids}
    try:
        [answer] = loaded.session.run(
            [loaded.output], {name: feeds[name] for name in loaded.inputs}
        )
    except Exception as error:  # noqa: BLE001 - the library has a dozen error classes
        raise ProviderUnavailable(
            f"The embedding model failed with {type(error).__name__}."
        ) from None
    array: NDArray[np.float32] = np.asarray(answer)
    if array.ndim != 3 or array.shape[:2] != mask.shape:
        return array
    if loaded.first_token:
        return array[:, 0]
    weights = mask[:, :, None].astype(np.float32)
    mean: NDArray[np.float32] = (array * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1)
    return mean


def _unusable(name: str, problem: str) -> ProviderRejected:
    return ProviderRejected(f"The file {name!r} of the embedding model {problem}.", file=name)
