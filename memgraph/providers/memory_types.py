"""Classify lines by memory type: one of eight types, or none.

The classifier is a multinomial logistic regression over `features` and the static embedding of the
line. It needs only numpy; ``benchmarks/train_types.py`` trains the weights on
``benchmarks/corpus/types.jsonl``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from memgraph.errors import ProviderAnswerInvalid
from memgraph.model.enums import MemoryType

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_CHARACTERS: Final = 600
"""The number of characters of a line that are read; the rest is ignored."""

CUES_FILE: Final = Path(__file__).parent / "data" / "types_cues.txt"
_LONGEST_PHRASE: Final = 4

_TOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?|\d+(?:[.,:/-]\d+)*|[^\w\s]|_")
_JAPANESE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_JAPANESE_RUN = re.compile(r"[\u3040-\u30ff\u3400-\u9fffー]+")

# Contractions and common misspellings of them, written out so that one cue covers all forms.
_CONTRACTIONS: Final[dict[str, tuple[str, ...]]] = {
    "won't": ("will", "not"),
    "wont": ("will", "not"),
    "can't": ("can", "not"),
    "cannot": ("can", "not"),
    "cant": ("can", "not"),
    "shan't": ("shall", "not"),
    "dont": ("do", "not"),
    "doesnt": ("does", "not"),
    "didnt": ("did", "not"),
    "isnt": ("is", "not"),
    "im": ("i", "am"),
    "ive": ("i", "have"),
    "let's": ("let", "us"),
    "lets": ("let", "us"),
    "gonna": ("going", "to"),
    "wanna": ("want", "to"),
}
_ENDINGS: Final[tuple[tuple[str, str], ...]] = (
    ("n't", "not"),
    ("'m", "am"),
    ("'re", "are"),
    ("'ve", "have"),
    ("'ll", "will"),
    ("'d", "would"),
    ("'s", "'s"),
)


class TypedToken(NamedTuple):
    """A word, number or punctuation mark.

    Attributes:
        written: the text as written.
        lower: the text in lower case, with contractions written out.
    """

    written: str
    lower: str


class _Cues(NamedTuple):
    phrases: dict[str, tuple[str, ...]]
    classes: dict[str, str]
    starts: frozenset[str]
    past: frozenset[str]
    function: frozenset[str]
    japanese: tuple[tuple[str, str], ...]


def tokenize(text: str) -> list[TypedToken]:
    """Split ``text`` into words, numbers and punctuation marks, in linear time."""
    tokens: list[TypedToken] = []
    for written in _TOKEN.findall(text):
        lower = written.casefold().replace("’", "'")
        tokens.extend(TypedToken(written, part) for part in _written_out(lower))
    return tokens


def _written_out(lower: str) -> tuple[str, ...]:
    if lower in _CONTRACTIONS:
        return _CONTRACTIONS[lower]
    if "'" in lower:
        for ending, full in _ENDINGS:
            if lower.endswith(ending) and len(lower) > len(ending):
                return lower[: -len(ending)], full
    return (lower,)


@cache
def _cues() -> _Cues:
    phrases: dict[str, tuple[str, ...]] = {}
    classes: dict[str, str] = {}
    japanese: list[tuple[str, str]] = []
    forms: dict[str, frozenset[str]] = {}
    for line in CUES_FILE.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        category, _, words = line.partition(": ")
        if category.startswith("@"):
            forms[category] = frozenset(words.split())
            continue
        for phrase in words.split(" | "):
            if _JAPANESE.search(phrase):
                japanese.append((phrase, category))
            elif category not in phrases.get(phrase, ()):
                phrases[phrase] = (*phrases.get(phrase, ()), category)
                classes.setdefault(phrase, category)
    starts = frozenset(phrase.split(" ")[0] for phrase in phrases if " " in phrase)
    return _Cues(phrases, classes, starts, forms["@past"], forms["@function"], tuple(japanese))


def features(text: str) -> list[str]:
    """Return the names of the features of ``text``, each once, in a fixed order."""
    text = text[:MAX_CHARACTERS].strip()
    tokens = tokenize(text)
    words = [token.lower for token in tokens]
    names: dict[str, None] = {}
    _add_words(words, names)
    categories = _add_cues(words, names)
    _add_japanese(text, names)
    _add_classes(tokens, categories, names)
    _add_shape(text, tokens, names)
    return list(names)


def _add_words(words: list[str], names: dict[str, None]) -> None:
    previous = "^"
    for word in words:
        shape = "0" if word[0].isdigit() else word
        names["w:" + shape] = None
        names["b:" + previous + " " + shape] = None
        if len(shape) > 4:
            names["p:" + shape[:4]] = None
            names["s:" + shape[-3:]] = None
        previous = shape
    names["b:" + previous + " $"] = None


def _add_cues(words: list[str], names: dict[str, None]) -> list[str]:
    """Add cue categories to ``names``; return per word the class of the longest cue starting
    there.
    """
    cues = _cues()
    best = [""] * len(words)
    for at, word in enumerate(words):
        for category in cues.phrases.get(word, ()):
            _mark(category, at, names)
        best[at] = best[at] or cues.classes.get(word, "")
        if word not in cues.starts:
            continue
        phrase = word
        for end in range(at + 1, min(at + _LONGEST_PHRASE, len(words))):
            phrase = phrase + " " + words[end]
            for category in cues.phrases.get(phrase, ()):
                _mark(category, at, names)
                best[at] = category
    return best


def _mark(category: str, at: int, names: dict[str, None]) -> None:
    names["c:" + category] = None
    if at < 3:
        names["c<3:" + category] = None
    if at == 0:
        names["c0:" + category] = None


def _add_japanese(text: str, names: dict[str, None]) -> None:
    if not _JAPANESE.search(text):
        return
    names["x:japanese"] = None
    for phrase, category in _cues().japanese:
        if phrase in text:
            names["c:" + category] = None
            if phrase in text[-len(phrase) - 4 :]:
                names["c$:" + category] = None
    for run in _JAPANESE_RUN.findall(text):
        names["j$:" + run[-2:]] = None
        names["j$:" + run[-3:]] = None
        for at in range(len(run) - 1):
            names["j:" + run[at : at + 2]] = None


def _add_classes(tokens: list[TypedToken], categories: list[str], names: dict[str, None]) -> None:
    second_previous, previous = "^", "^"
    for at, (token, category) in enumerate(zip(tokens, categories, strict=True)):
        name = category or _form(token, first=at == 0)
        names["k:" + previous + " " + name] = None
        names["k:" + second_previous + " " + previous + " " + name] = None
        if at < 4:
            names[f"k{at}:" + name] = None
        second_previous, previous = previous, name
    names["k:" + second_previous + " " + previous + " $"] = None


def _form(token: TypedToken, *, first: bool) -> str:
    """Return the class of a word that is not a cue, by its grammar or its shape."""
    word = token.lower
    head = word[0]
    if head.isdigit():
        return _number_form(word)
    if not head.isalpha():
        return word
    if word in _cues().function:
        return word
    if token.written[0].isupper() and (not first or len(token.written) == 1):
        return "NAME" if token.written[1:].islower() else "CAPS"
    if word in _cues().past or (word.endswith("ed") and len(word) > 4):
        return "PAST"
    if word.endswith("ing") and len(word) > 5:
        return "ING"
    if word.endswith("ly") and len(word) > 4:
        return "LY"
    return "Word" if token.written[0].isupper() else "word"


def _number_form(word: str) -> str:
    if ":" in word:
        return "TIME"
    if len(word) == 4 and word[:2] in ("19", "20"):
        return "YEAR"
    if word.count("-") == 2 or word.count("/") == 2 or word.count(".") == 2:
        return "DATE"
    return "NUM"


def _add_shape(text: str, tokens: list[TypedToken], names: dict[str, None]) -> None:
    count = len(tokens)
    for bound in (1, 2, 3, 4, 6, 8, 12, 18, 28):
        if count <= bound:
            names[f"x:len<={bound}"] = None
    last = text[-1:] if text else ""
    names["x:last=" + (last if not last.isalnum() else "word")] = None
    if last == "?":
        names["x:question"] = None
    for sign in ("?", "!", ":", ";", "%", "…", "...", "[ ]", "- [", "#", "`", "("):
        if sign in text:
            names["x:has" + sign] = None
    if text[:1].islower():
        names["x:lower"] = None
    if ":" in text[:24]:
        names["x:heading"] = None
    if any(ord(character) > 0x2190 and not character.isalnum() for character in text):
        names["x:symbol"] = None
    if any(token.lower[0].isdigit() for token in tokens):
        names["x:digit"] = None


NONE_LABEL: Final = "none"
"""The label of a line that is not worth remembering."""

TYPE_LABELS: Final[tuple[str, ...]] = (*(t.value for t in MemoryType), NONE_LABEL)

Embed: TypeAlias = "Callable[[Sequence[str]], NDArray[np.float32]]"
"""Turns n texts into an (n, d) array of unit rows; texts that cannot be embedded give zero rows."""

# Limits the gathered weights to a few megabytes.
_BATCH: Final = 256

WEIGHTS_FILE: Final = Path(__file__).parent / "data" / "types_weights.npz"


@dataclass(frozen=True, slots=True)
class TypeGuess:
    """The most likely type of a line.

    Attributes:
        type: None if the line is not worth remembering.
        probability: the probability of ``type``, 0..1.
        probabilities: the probabilities of the nine labels, with ``"none"``; their sum is 1.
    """

    type: MemoryType | None
    probability: float
    probabilities: Mapping[str, float]

    @property
    def label(self) -> str:
        """The type's value, or ``"none"``."""
        return self.type.value if self.type is not None else NONE_LABEL


class TypeWeights(NamedTuple):
    """A trained model. The columns of all arrays are the labels of `TYPE_LABELS`.

    Attributes:
        rows: the row in ``table`` of each feature name.
        table: float32 (features, 9), the weights of the features of a text.
        dense: float32 (d, 9), the weights of the embedding; (0, 9) for a model of words only.
        bias: float32 (9,).
    """

    rows: Mapping[str, int]
    table: NDArray[np.float32]
    dense: NDArray[np.float32]
    bias: NDArray[np.float32]


class TypeClassifier:
    """Assigns memory types to lines. Threads may share an instance.

    Args:
        embed: the embedding that the weights were trained with (that of the ``local`` provider).
            Without it, or with other dimensions than the weights, only words are used.
    """

    def __init__(self, embed: Embed | None = None) -> None:
        self._embed = embed

    def classify(self, texts: Sequence[str]) -> list[TypeGuess]:
        """Return the most likely type of every text, in order.

        Raises:
            ProviderAnswerInvalid: ``embed`` did not return a table of ``len(texts)`` rows.
        """
        if not texts:
            return []
        vectors = self._vectors(texts)
        weights = load_weights("both" if vectors is not None else "words")
        return [_guess(row) for row in probabilities(weights, texts, vectors)]

    def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32] | None:
        if self._embed is None:
            return None
        vectors = self._embed([text[:MAX_CHARACTERS] for text in texts])
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise ProviderAnswerInvalid(
                f"The embedding function returned shape {vectors.shape} for {len(texts)} texts.",
                reason="shape",
            )
        return vectors if vectors.shape[1] == len(load_weights("both").dense) else None


def probabilities(
    weights: TypeWeights, texts: Sequence[str], vectors: NDArray[np.float32] | None
) -> NDArray[np.float32]:
    """Return the softmax of the label scores, shape (n, 9), columns as in `TYPE_LABELS`.

    The features of a text are scaled to a vector of norm 1, as in training.
    """
    scores = np.zeros((len(texts), len(TYPE_LABELS)), dtype=np.float32)
    for start in range(0, len(texts), _BATCH):
        _add_sparse(weights, texts[start : start + _BATCH], scores[start : start + _BATCH])
    if vectors is not None:
        scores += vectors @ weights.dense
    scores += weights.bias
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return scores


def _add_sparse(weights: TypeWeights, texts: Sequence[str], scores: NDArray[np.float32]) -> None:
    """Add to each row of ``scores`` the feature weights of its text, scaled to norm 1."""
    rows = weights.rows
    row_lists = [[rows[name] for name in features(text) if name in rows] for text in texts]
    filled = [at for at, rows_of_text in enumerate(row_lists) if rows_of_text]
    if not filled:
        return
    sizes = np.array([len(row_lists[at]) for at in filled])
    flat = np.fromiter(
        (row for rows_of_text in row_lists for row in rows_of_text), np.intp, int(sizes.sum())
    )
    # reduceat needs non-empty segments, so texts without known features are left out.
    sums = np.add.reduceat(weights.table[flat], np.cumsum(sizes) - sizes)
    scores[filled] += sums / np.sqrt(sizes, dtype=np.float32)[:, None]


def _guess(row: NDArray[np.float32]) -> TypeGuess:
    values = dict(zip(TYPE_LABELS, row.tolist(), strict=True))
    best = TYPE_LABELS[int(row.argmax())]
    return TypeGuess(
        type=None if best == NONE_LABEL else MemoryType(best),
        probability=values[best],
        probabilities=values,
    )


@cache
def load_weights(model: str) -> TypeWeights:
    """Load the shipped weights: ``"both"`` for words and the embedding, or ``"words"``."""
    with np.load(WEIGHTS_FILE, allow_pickle=False) as data:
        names: list[str] = json.loads(bytes(data["names"]).decode("utf-8"))
        table = data[f"{model}_table"].astype(np.float32)
        dense = data[f"{model}_dense"].astype(np.float32)
        bias = data[f"{model}_bias"].astype(np.float32)
    return TypeWeights({name: row for row, name in enumerate(names)}, table, dense, bias)
