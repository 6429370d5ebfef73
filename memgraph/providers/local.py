"""The default embedding model: a table of token vectors, no network, no torch.

A text's vector is the weighted mean of its tokens' vectors. The table was distilled from a
sentence transformer (`models/static-256/MODEL.md` tells how); here it is only looked up, so a
text costs microseconds and the same text gives the same bytes.
"""

from __future__ import annotations

import hashlib
import threading
import time
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from memgraph.errors import ProviderRejected
from memgraph.providers.embedding import prepared
from memgraph.providers.word_pieces import WordPieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

MODEL_DIRECTORY: Final = Path(__file__).parent / "models" / "static-256"
MODEL_FILES: Final = ("tokenizer.json", "vectors.npy", "scales.npy")
CHECKSUMS: Final = "SHA256SUMS"

# Bounds the gathered token vectors to about 8 MB in the worst case (one token per character), and
# to what a core's own cache holds in the usual one.
_BATCH_CHARACTERS: Final = 8_192


class _Loaded(NamedTuple):
    pieces: WordPieces
    vectors: NDArray[np.int8]
    scales: NDArray[np.float32]


class LocalEmbedding:
    """The static 256-dimension model inside the package; its files are read at the first embed."""

    name: ClassVar[str] = "local"
    model: ClassVar[str] = "memgraph-static-256@1"
    dimensions: ClassVar[int] = 256

    def __init__(self, directory: Path = MODEL_DIRECTORY) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    @property
    def ready(self) -> bool:
        """Whether its files were read: then a short text takes well under a millisecond."""
        return self._loaded is not None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See `EmbeddingProvider.embed`.

        Raises:
            ProviderRejected: the model's files are missing or damaged; reinstalling mends it.
        """
        import numpy as np

        loaded = self._load()
        out = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for start, batch in _batches(texts):
            rows = out[start : start + len(batch)]
            _add_tokens(loaded, batch, rows)
            norms = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
            np.divide(rows, norms, out=rows, where=norms > 0.0)
            # Another thread may have a message to store: it is not to wait for all texts.
            time.sleep(0)
        return out

    def _load(self) -> _Loaded:
        with self._lock:
            if self._loaded is None:
                self._loaded = _read(self._directory, self.dimensions)
            return self._loaded


def verify(directory: Path = MODEL_DIRECTORY) -> None:
    """Compare every file of the model with its recorded SHA-256 (about 8 MB to read).

    Raises:
        ProviderRejected: a file is missing or its content differs; ``details['file']`` names it.
    """
    expected = _checksums(directory)
    for name in MODEL_FILES:
        try:
            found = hashlib.sha256((directory / name).read_bytes()).hexdigest()
        except OSError:
            raise _damaged(name) from None
        if found != expected[name]:
            raise _damaged(name)


def _checksums(directory: Path) -> dict[str, str]:
    try:
        lines = (directory / CHECKSUMS).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise _damaged(CHECKSUMS) from None
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    if sums.keys() != set(MODEL_FILES):
        raise _damaged(CHECKSUMS)
    return sums


# One copy for all services of a process: reading takes a tenth of a second.
@lru_cache(maxsize=1)
def _read(directory: Path, dimensions: int) -> _Loaded:
    import numpy as np
    from tokenizers import Tokenizer

    verify(directory)
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    # Mapped, not read: a short query touches a few pages, and processes share them.
    vectors: NDArray[Any] = np.load(directory / "vectors.npy", mmap_mode="r", allow_pickle=False)
    scales: NDArray[Any] = np.load(directory / "scales.npy", allow_pickle=False)
    size = tokenizer.get_vocab_size()
    unknown = tokenizer.token_to_id("[UNK]")
    if vectors.shape != (size, dimensions) or scales.shape != (size,) or unknown is None:
        raise _damaged("vectors.npy")
    return _Loaded(WordPieces(tokenizer, unknown), vectors, scales)


def _damaged(name: str) -> ProviderRejected:
    return ProviderRejected(
        f"The local embedding model's file {name!r} is missing or damaged: reinstall memgraph.",
        file=name,
    )


def _batches(texts: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Cut ``texts`` into runs of bounded length; each with the index of its first text."""
    start, size = 0, 0
    batch: list[str] = []
    for index, text in enumerate(texts):
        part = prepared(text)
        if batch and size + len(part) > _BATCH_CHARACTERS:
            yield start, batch
            start, batch, size = index, [], 0
        batch.append(part)
        size += len(part) + 1
    if batch:
        yield start, batch


def _add_tokens(loaded: _Loaded, texts: list[str], out: NDArray[np.float32]) -> None:
    """Add to each row of ``out`` the weighted token vectors of its text."""
    import numpy as np

    tokens = loaded.pieces.ids(texts)
    flat = np.fromiter(chain.from_iterable(tokens), dtype=np.intp, count=sum(map(len, tokens)))
    rows = loaded.vectors[flat] * loaded.scales[flat, None]
    end = 0
    # One small sum per text is seven times faster than reduceat over the first axis.
    for row, ids in zip(out, tokens, strict=True):
        start, end = end, end + len(ids)
        np.add.reduce(rows[start:end], axis=0, out=row)
