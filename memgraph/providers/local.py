"""The default embedding model: a table of token vectors, no network, no torch.

A text's vector is the weighted mean of its tokens' vectors. The table was distilled from a
sentence transformer (`models/static-256/MODEL.md` tells how); here it is only looked up, so a
text costs microseconds and the same text gives the same bytes.
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from memgraph.errors import ProviderRejected
from memgraph.providers.embedding import prepared

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer


# Token ids of texts, with the pieces of every word met kept: most words of a text are old ones.


# Bounds what is kept to about 10 MB; what is over begins anew.
_MOST_WORDS: Final = 50_000
_LONGEST_KEPT: Final = 40
# Few texts are tokenized one by one: a batch call starts the tokenizer's thread pool.
_SINGLE_CALLS: Final = 8
# Beside ASCII the punctuation of typeset text. Lower-casing changes letters alone, no count.
_PLAIN = re.compile("[\t\n\r -~\u2013\u2014\u2018\u2019\u201c\u201d\u2026]*")
_PART = re.compile(r"[0-9a-z]+|[^\s0-9a-z]")


class WordPieces:
    """Maps texts to token ids, the unknown token left out. Threads may share one."""

    def __init__(self, tokenizer: Tokenizer, unknown_id: int) -> None:
        self._tokenizer = tokenizer
        self._unknown_id = unknown_id
        self._known: dict[str, tuple[int, ...]] = {}

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of every text, in order."""
        found: list[list[int] | None] = [self._plain(text) for text in texts]
        others = iter(
            self._cut([text for text, ids in zip(texts, found, strict=True) if ids is None])
        )
        return [next(others) if ids is None else ids for ids in found]

    def _plain(self, text: str) -> list[int] | None:
        """The ids of a text of plain characters, else None."""
        if not _PLAIN.fullmatch(text):
            return None
        parts = _PART.findall(text.lower())
        known = self._known
        try:
            return list(chain.from_iterable(map(known.__getitem__, parts)))
        except KeyError:
            return list(chain.from_iterable(self._learn(parts)))

    def _learn(self, parts: Sequence[str]) -> Iterable[Sequence[int]]:
        # Another thread may begin anew meanwhile; what is known here only grows.
        known = self._known
        new = [part for part in dict.fromkeys(parts) if part not in known]
        pieces = dict(zip(new, map(tuple, self._cut(new)), strict=True))
        if len(known) + len(new) > _MOST_WORDS:
            self._known = {}
        self._known |= {part: ids for part, ids in pieces.items() if len(part) <= _LONGEST_KEPT}
        return [pieces[part] if part in pieces else known[part] for part in parts]

    def _cut(self, texts: list[str]) -> list[list[int]]:
        if len(texts) <= _SINGLE_CALLS:
            cut = [self._tokenizer.encode(text, add_special_tokens=False) for text in texts]
        else:
            cut = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [[one for one in each.ids if one != self._unknown_id] for each in cut]


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
        """True when its files are loaded: then a short text takes well under a millisecond."""
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
            if start:
                # Another thread may have a message to store: it is not to wait for all texts. A
                # query is one batch, and a recall goes on with it at once.
                time.sleep(0)
            rows = out[start : start + len(batch)]
            _add_tokens(loaded, batch, rows)
            norms = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
            np.divide(rows, norms, out=rows, where=norms > 0.0)
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
