"""The reader of pairs: what a later statement is to an earlier one.

A small cross-encoder that was trained on written pairs (see `models/pairs-minilm/MODEL.md`) reads
both statements at once. It runs by numpy, without network; a pair takes 10 to 30 ms on one core, so
it is called in the background only.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self

from memgraph.providers.local import (
    MODEL_DIRECTORY as VOCABULARY_DIRECTORY,
    WordPieces,
    damaged,
    verify,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WIDTH: Final = 384
LAYERS: Final = 6
HEADS: Final = 12
MAX_TOKENS: Final = 128
MAX_SIDE: Final = 62
"""The tokens of one statement that are read; the rest is left out."""
DIRECTORY: Final = Path(__file__).parent / "models" / "pairs-minilm"
MODEL_FILES: Final = ("settings.json", "weights.npz")
_BATCH: Final = 16


class StatementPair(NamedTuple):
    """Two statements, each with its speaker before it where one is known ("Mira: I moved.")."""

    earlier: str
    later: str


class PairVerdict(NamedTuple):
    """Calibrated probabilities, 0..1, with the sum 1.

    Attributes:
        changes: the later replaces, ends or contradicts the earlier.
        repeats: it says the same.
        none: neither; both may hold.
    """

    changes: float
    repeats: float
    none: float


class PairReader(Protocol):
    """Decides what later statements are to earlier ones."""

    def read(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        """Return a verdict for each pair, in order."""


class PairTokenizer:
    """Turns two texts into the ids that the model reads: [CLS] earlier [SEP] later [SEP]."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self.vocabulary = dict(vocabulary)
        self._pieces = WordPieces(vocabulary)
        self._start, self._end = len(vocabulary), len(vocabulary) + 1

    @classmethod
    def load(cls) -> Self:
        """Return a tokenizer with the vocabulary of the local embedding model."""
        tokenizer = json.loads((VOCABULARY_DIRECTORY / "tokenizer.json").read_bytes())
        vocabulary: dict[str, int] = tokenizer["model"]["vocab"]
        vocabulary.pop(tokenizer["model"]["unk_token"], None)
        names = sorted(vocabulary, key=vocabulary.__getitem__)
        return cls({name: number for number, name in enumerate(names)})

    def encoded(self, earlier: str, later: str) -> tuple[list[int], list[int]]:
        """Return the ids of both texts and the side of each, 0 or 1."""
        first, second = (ids[:MAX_SIDE] for ids in self._pieces.ids([earlier, later]))
        ids = [self._start, *first, self._end, *second, self._end]
        return ids, [0] * (len(first) + 2) + [1] * (len(second) + 1)


class LocalPairReader:
    """The model in this package; its files are read on first use, about 70 MB in memory."""

    def __init__(self, directory: Path = DIRECTORY) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._loaded: _Model | None = None

    def read(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        """See `PairReader.read`.

        Raises:
            ProviderRejected: the model's files are missing or damaged; reinstall the package.
        """
        if not pairs:
            return []
        with self._lock:
            self._loaded = model = self._loaded or _model(self._directory)
        encoded = [model.tokenizer.encoded(*pair) for pair in pairs]
        verdicts: list[PairVerdict | None] = [None] * len(pairs)
        order = sorted(range(len(pairs)), key=lambda n: len(encoded[n][0]))
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            rows = model.probabilities([encoded[n] for n in batch])
            for n, row in zip(batch, rows, strict=True):
                verdicts[n] = PairVerdict(*map(float, row))
        return [verdict for verdict in verdicts if verdict is not None]


@lru_cache(maxsize=1)
def _model(directory: Path) -> _Model:
    import numpy as np

    verify(directory, MODEL_FILES)
    settings = json.loads((directory / "settings.json").read_bytes())
    with np.load(directory / "weights.npz", allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    tokenizer = PairTokenizer.load()
    if arrays["words.weight"].shape != (len(tokenizer.vocabulary) + 2, WIDTH):
        raise damaged("weights.npz")
    return _Model(arrays, float(settings["factor"]), tokenizer)


class _Model:
    """The encoder and its head, by numpy."""

    def __init__(
        self, arrays: Mapping[str, NDArray[Any]], factor: float, tokenizer: PairTokenizer
    ) -> None:
        import numpy as np

        self.tokenizer = tokenizer
        self._factor = factor
        self._words = arrays["words.weight"]
        self._scales = arrays["words.weight.scale"]
        # Transposed once, so that every product is a plain one.
        self._weights: dict[str, NDArray[np.float32]] = {}
        for name, values in arrays.items():
            if name.startswith("words.") or name.endswith(".scale"):
                continue
            scale = arrays.get(f"{name}.scale")
            wide = values.astype(np.float32) if scale is None else values * scale[:, None]
            is_matrix = wide.ndim == 2 and not name.startswith(("places", "sides"))
            self._weights[name] = np.ascontiguousarray(wide.T) if is_matrix else wide

    def probabilities(
        self, encoded: Sequence[tuple[Sequence[int], Sequence[int]]]
    ) -> NDArray[np.float32]:
        """Return the probabilities of some pairs, shape (n, 3)."""
        import numpy as np

        width = max(len(ids) for ids, _ in encoded)
        ids = np.zeros((len(encoded), width), dtype=np.intp)
        sides = np.zeros_like(ids)
        real = np.zeros((len(encoded), width), dtype=np.float32)
        for row, (own, side) in enumerate(encoded):
            ids[row, : len(own)], sides[row, : len(own)], real[row, : len(own)] = own, side, 1.0
        w = self._weights
        x = self._words[ids] * self._scales[ids][:, :, None]
        x = self._normed(x + w["places.weight"][:width] + w["sides.weight"][sides], "norm")
        mask = (real - 1.0)[:, None, None, :] * 1e9
        for number in range(LAYERS):
            x = self._layer(x, mask, f"layers.{number}")
        mean = (x * real[:, :, None]).sum(axis=1) / real.sum(axis=1, keepdims=True)
        hidden = self._linear(np.concatenate([x[:, 0], mean], axis=1), "hidden")
        scores = self._linear(_gelu(hidden), "answer") * self._factor
        return _softmax(scores)

    def _layer(
        self, x: NDArray[np.float32], mask: NDArray[np.float32], name: str
    ) -> NDArray[np.float32]:
        rows, length, _ = x.shape
        size = WIDTH // HEADS
        parts = self._linear(x, f"{name}.qkv").reshape(rows, length, 3, HEADS, size)
        q, k, v = (parts[:, :, n].transpose(0, 2, 1, 3) for n in range(3))
        seen = _softmax(q @ k.transpose(0, 1, 3, 2) / size**0.5 + mask) @ v
        seen = seen.transpose(0, 2, 1, 3).reshape(rows, length, WIDTH)
        x = self._normed(x + self._linear(seen, f"{name}.out"), f"{name}.norm1")
        wide = _gelu(self._linear(x, f"{name}.up"))
        return self._normed(x + self._linear(wide, f"{name}.down"), f"{name}.norm2")

    def _linear(self, x: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        weight = self._weights[f"{name}.weight"]
        flat = x.reshape(-1, x.shape[-1]) @ weight
        return (flat + self._weights[f"{name}.bias"]).reshape(*x.shape[:-1], weight.shape[1])

    def _normed(self, x: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        import numpy as np

        centred = x - x.mean(axis=-1, keepdims=True)
        spread = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + 1e-12)
        normed: NDArray[np.float32] = centred / spread
        return normed * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _gelu(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the GELU by its approximation with tanh, D. Hendrycks and K. Gimpel, 2016."""
    import numpy as np

    inner = np.tanh(0.7978845608 * (x + 0.044715 * x * x * x))
    return (0.5 * x * (1.0 + inner)).astype(np.float32, copy=False)


def _softmax(x: NDArray[np.float32]) -> NDArray[np.float32]:
    import numpy as np

    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    shares: NDArray[np.float32] = powers / powers.sum(axis=-1, keepdims=True)
    return shares
