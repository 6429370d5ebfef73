"""The default embedding model: a table of token vectors, without network or torch.

The vector of a text is the weighted mean of its tokens' vectors. The table was distilled from a
sentence transformer (see `models/static-256/MODEL.md`). It is only looked up here, so a text takes
microseconds, and the same text always gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from memgraph.errors import ProviderRejected
from memgraph.providers.embedding import prepared

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# Limits the cache of words to about 10 MB; when it is full, it is emptied.
_MOST_WORDS: Final = 50_000
_LONGEST_KEPT: Final = 40
# Longer words count as unknown, as in the training of the model.
_LONGEST_WORD: Final = 100
# ASCII and typographic punctuation, where lower-casing does not change the number of characters.
_PLAIN = re.compile("[\t\n\r -~\u2013\u2014\u2018\u2019\u201c\u201d\u2026]*")
_PART = re.compile(r"[0-9a-z]+|[^\s0-9a-z]")
_IDEOGRAPHS: Final = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)


class _Characters(dict[int, str]):
    """A table for ``str.translate`` that computes each character's replacement on first use."""

    def __init__(self, replacement: Callable[[str], str]) -> None:
        super().__init__()
        self._replacement = replacement

    def __missing__(self, code: int) -> str:
        self[code] = replaced = self._replacement(chr(code))
        return replaced


def _cleaned(character: str) -> str:
    category = unicodedata.category(character)
    if category[0] == "Z" or character in "\t\n\r":
        return " "
    if character == "\ufffd" or category in ("Cc", "Cf", "Co", "Cs"):
        return ""
    if any(first <= ord(character) <= last for first, last in _IDEOGRAPHS):
        return f" {character} "
    return character


def _folded(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Mn":
        return ""
    if category[0] == "P" or (character < "\x80" and category[0] == "S"):
        return f" {character} "
    return character.lower()


_CLEANED: Final = _Characters(_cleaned)
_FOLDED: Final = _Characters(_folded)


def _words(text: str) -> list[str]:
    """Split a text into lower-case words and punctuation without accents, as BERT does."""
    if _PLAIN.fullmatch(text):
        return _PART.findall(text.lower())
    cleaned = unicodedata.normalize("NFD", text.translate(_CLEANED))
    return cleaned.translate(_FOLDED).split()


class WordPieces:
    """Map texts to token ids with WordPiece, leaving out unknown words. Thread-safe.

    The ids of words are cached, because most words of a text have occurred before.

    Args:
        vocabulary: the id of each piece; pieces inside a word begin with ``##``.
    """

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._vocabulary = vocabulary
        self._longest = max(map(len, vocabulary), default=0)
        self._known: dict[str, tuple[int, ...]] = {}

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of every text, in order."""
        return [self._text(_words(text)) for text in texts]

    def _text(self, words: Sequence[str]) -> list[int]:
        known = self._known
        try:
            return list(chain.from_iterable(map(known.__getitem__, words)))
        except KeyError:
            return list(chain.from_iterable(self._learn(words)))

    def _learn(self, words: Sequence[str]) -> Iterable[Sequence[int]]:
        # Another thread may replace the cache meanwhile; this dictionary only grows.
        known = self._known
        new = {word: self._pieces(word) for word in dict.fromkeys(words) if word not in known}
        if len(known) + len(new) > _MOST_WORDS:
            self._known = {}
        self._known |= {word: ids for word, ids in new.items() if len(word) <= _LONGEST_KEPT}
        return [new[word] if word in new else known[word] for word in words]

    def _pieces(self, word: str) -> tuple[int, ...]:
        """Return the ids of the longest pieces from the left; empty if the rest is unknown."""
        if len(word) > _LONGEST_WORD:
            return ()
        pieces: list[int] = []
        start, prefix = 0, ""
        while start < len(word):
            for end in range(min(len(word), start + self._longest), start, -1):
                piece = self._vocabulary.get(prefix + word[start:end])
                if piece is not None:
                    pieces.append(piece)
                    start, prefix = end, "##"
                    break
            else:
                return ()
        return tuple(pieces)


MODEL_DIRECTORY: Final = Path(__file__).parent / "models" / "static-256"
MODEL_FILES: Final = ("tokenizer.json", "vectors.npy", "scales.npy")
CHECKSUMS: Final = "SHA256SUMS"

# Limits the gathered token vectors to about 8 MB in the worst case (one token per character), and
# usually to the size of a core's cache.
_BATCH_CHARACTERS: Final = 8_192


class _Loaded(NamedTuple):
    pieces: WordPieces
    vectors: NDArray[np.int8]
    scales: NDArray[np.float32]


class LocalEmbedding:
    """The static model with 256 dimensions in this package; its files are read on first use."""

    name: ClassVar[str] = "local"
    model: ClassVar[str] = "memgraph-static-256@1"
    dimensions: ClassVar[int] = 256

    def __init__(self, directory: Path = MODEL_DIRECTORY) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    @property
    def ready(self) -> bool:
        """True if the files are loaded; a short text then takes well under a millisecond."""
        return self._loaded is not None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See `EmbeddingProvider.embed`.

        Raises:
            ProviderRejected: the model's files are missing or damaged; reinstall the package.
        """
        import numpy as np

        loaded = self._load()
        out = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for start, batch in _batches(texts):
            if start:
                # Yield to other threads, which may have a message to store. A query is a single
                # batch, so recalls never yield here.
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


def verify(directory: Path = MODEL_DIRECTORY, names: Sequence[str] = MODEL_FILES) -> None:
    """Compare every file of a model with its recorded SHA-256.

    Raises:
        ProviderRejected: a file is missing or its content differs; ``details['file']`` names it.
    """
    expected = _checksums(directory, names)
    for name in names:
        try:
            digest = hashlib.sha256((directory / name).read_bytes()).hexdigest()
        except OSError:
            raise damaged(name) from None
        if digest != expected[name]:
            raise damaged(name)


def _checksums(directory: Path, names: Sequence[str]) -> dict[str, str]:
    try:
        lines = (directory / CHECKSUMS).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise damaged(CHECKSUMS) from None
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    if sums.keys() != set(names):
        raise damaged(CHECKSUMS)
    return sums


# Cached, so that all services of a process share one copy.
@lru_cache(maxsize=1)
def _read(directory: Path, dimensions: int) -> _Loaded:
    import numpy as np

    verify(directory)
    tokenizer = json.loads((directory / "tokenizer.json").read_bytes())
    vocabulary: dict[str, int] = tokenizer["model"]["vocab"]
    unknown = vocabulary.pop(tokenizer["model"]["unk_token"], None)
    # Memory-mapped: a short query reads only a few pages, and processes share them.
    vectors: NDArray[Any] = np.load(directory / "vectors.npy", mmap_mode="r", allow_pickle=False)
    scales: NDArray[Any] = np.load(directory / "scales.npy", allow_pickle=False)
    size = len(vocabulary) + 1
    if vectors.shape != (size, dimensions) or scales.shape != (size,) or unknown is None:
        raise damaged("vectors.npy")
    return _Loaded(WordPieces(vocabulary), vectors, scales)


def damaged(name: str) -> ProviderRejected:
    """Return the error for a missing or damaged file of a model in this package."""
    return ProviderRejected(
        f"The file {name!r} of a local model is missing or damaged: reinstall memgraph.",
        file=name,
    )


def _batches(texts: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Split ``texts`` into batches of limited length, each with the index of its first text."""
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
    """Store in each row of ``out`` the sum of the weighted token vectors of its text."""
    import numpy as np

    tokens = loaded.pieces.ids(texts)
    flat = np.fromiter(chain.from_iterable(tokens), dtype=np.intp, count=sum(map(len, tokens)))
    rows = loaded.vectors[flat] * loaded.scales[flat, None]
    end = 0
    # A separate sum per text is seven times faster than reduceat over the first axis.
    for row, ids in zip(out, tokens, strict=True):
        start, end = end, end + len(ids)
        np.add.reduce(rows[start:end], axis=0, out=row)
