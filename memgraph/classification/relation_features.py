"""Numbers that describe how a later statement stands to an earlier one, for the learned head.

Every feature is told in ``FEATURE_NAMES``; order and meaning are part of the shipped weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from memgraph.classification import relation_lexicon as lexicon
from memgraph.classification.relation_dates import same_clock, same_date
from memgraph.classification.relation_frame import (
    Frame,
    Statement,
    asserted,
    has_any,
    opinions,
    read_pair,
)
from memgraph.classification.relation_joint import joint_features
from memgraph.classification.relation_kinds import exclude, opposed
from memgraph.classification.relation_tokens import Token, concepts
from memgraph.classification.relation_topic import topic_features
from memgraph.classification.relation_values import Quantity, Values, same_quantity

if TYPE_CHECKING:
    from numpy.typing import NDArray

Embed: TypeAlias = Callable[[Sequence[str]], "NDArray[np.float32]"]
"""Unit rows, one for each text."""

_SAME_CONCEPT: Final = 0.9
_ALIKE: Final = 0.55


class Vectors:
    """Vectors of texts and words, each embedded once for a batch."""

    def __init__(self, embed: Embed, texts: Sequence[str]) -> None:
        unique = list(dict.fromkeys(texts))
        self._rows: NDArray[np.float32] = (
            embed(unique) if unique else np.zeros((0, 1), dtype=np.float32)
        )
        self._index = {text: i for i, text in enumerate(unique)}

    def has(self, text: str) -> bool:
        """Whether a text was given at construction."""
        return text in self._index

    def rows(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Rows of texts that were given at construction, shape (n, d)."""
        return np.take(self._rows, [self._index[text] for text in texts], axis=0)


def _similarities(a: Frame, b: Frame, vectors: Vectors) -> NDArray[np.float32]:
    """Likeness in 0..1 of every content word of a to every one of b."""
    left_rows = vectors.rows([t.low for t in a.content])
    right_rows = vectors.rows([t.low for t in b.content])
    sims: NDArray[np.float32] = np.clip(left_rows @ right_rows.T, 0.0, 1.0)
    for i, left in enumerate(a.content):
        groups = concepts(left.stem)
        for j, right in enumerate(b.content):
            if left.stem == right.stem:
                sims[i, j] = 1.0
            elif groups and groups & concepts(right.stem):
                sims[i, j] = max(sims[i, j], _SAME_CONCEPT)
    return sims


def _weights(content: Sequence[Token]) -> NDArray[np.float32]:
    return np.array([0.4 if t.low in lexicon.LIGHT else 1.0 for t in content], dtype=np.float32)


def _overlap(a: Frame, b: Frame, vectors: Vectors) -> dict[str, float]:
    whole = vectors.rows([a.text, b.text])
    out = {
        "cosine": float(whole[0] @ whole[1]),
        "cover_a": 0.0, "cover_b": 0.0, "exact_a": 0.0, "exact_b": 0.0,
        "left_a": float(len(a.content)), "left_b": float(len(b.content)), "left_cosine": 0.0,
        "scope_flip": 0.0, "scope_agree": 0.0, "scope_flip_max": 0.0,
        "antonym": 0.0, "antonym_flip": 0.0, "kind_swap": 0.0, "head_a": 0.0, "head_b": 0.0,
        "concept_hits": 0.0, "left_alike": 0.0,
    }  # fmt: skip
    if not a.content or not b.content:
        return out
    sims = _similarities(a, b, vectors)
    wa, wb = _weights(a.content), _weights(b.content)
    best_a, best_b = sims.max(axis=1), sims.max(axis=0)
    soft_a, soft_b = np.where(best_a > 0.4, best_a, 0.0), np.where(best_b > 0.4, best_b, 0.0)
    out["cover_a"] = float(soft_a @ wa / wa.sum())
    out["cover_b"] = float(soft_b @ wb / wb.sum())
    out["exact_a"] = float((best_a >= 0.999) @ wa / wa.sum())
    out["exact_b"] = float((best_b >= 0.999) @ wb / wb.sum())
    rest_a, rest_b = best_a < _ALIKE, best_b < _ALIKE
    out["left_a"], out["left_b"] = float(rest_a @ wa), float(rest_b @ wb)
    out["head_a"], out["head_b"] = float(best_a[0]), float(best_b[0])
    out["concept_hits"] = float(((best_a >= 0.89) & (best_a < 0.999)).sum())
    if rest_a.any() and rest_b.any():
        va = vectors.rows([t.low for t, r in zip(a.content, rest_a, strict=True) if r]).mean(axis=0)
        vb = vectors.rows([t.low for t, r in zip(b.content, rest_b, strict=True) if r]).mean(axis=0)
        norm = float(np.linalg.norm(va) * np.linalg.norm(vb))
        out["left_cosine"] = float(va @ vb) / norm if norm else 0.0
        between = vectors.rows([t.low for t, r in zip(a.content, rest_a, strict=True) if r]) @ (
            vectors.rows([t.low for t, r in zip(b.content, rest_b, strict=True) if r]).T
        )
        out["left_alike"] = float(between.max())
    out |= _polarity(a, b, sims, wa)
    return out


def _polarity(
    a: Frame, b: Frame, sims: NDArray[np.float32], wa: NDArray[np.float32]
) -> dict[str, float]:
    """Matched words of unlike and of like polarity, and opposites that stand in both."""
    flip = agree = flip_max = antonym = antonym_flip = 0.0
    for i, left in enumerate(a.content):
        j = int(sims[i].argmax())
        strength = float(sims[i, j]) * float(wa[i])
        if strength > 0.5:
            if a.negated[i] != b.negated[j]:
                flip += strength
                flip_max = max(flip_max, strength)
            elif a.negated[i]:
                agree += strength
        for k, right in enumerate(b.content):
            if opposed(left, right):
                if a.negated[i] == b.negated[k]:
                    antonym += 1.0
                else:
                    antonym_flip += 1.0
    opposite_signs = _sign_antonyms(a, b)
    return {
        "scope_flip": flip, "scope_agree": agree, "scope_flip_max": flip_max,
        "antonym": antonym + opposite_signs, "antonym_flip": antonym_flip,
        "kind_swap": _kind_swap(a, b),
    }  # fmt: skip


def _kind_swap(a: Frame, b: Frame) -> float:
    """1.0 where a word of one stands against another member of its kind that only the other has."""
    left, right = {t.stem for t in a.content}, {t.stem for t in b.content}
    return float(any(exclude(x, y) for x in left - right for y in right - left))


def _sign_antonyms(a: Frame, b: Frame) -> float:
    """Opposites among the function words (on/off, up/down, before/after), which are no content."""
    left = {t.low for t in a.tokens if t.low in lexicon.STOP}
    right = {t.low for t in b.tokens if t.low in lexicon.STOP}
    hits = 0
    for word in left & lexicon.ANTONYMS.keys():
        hits += (
            any(o in right and o not in left for o in lexicon.ANTONYMS[word]) and word not in right
        )
    return float(hits)


def _compare(a: Values, b: Values) -> dict[str, float]:
    equal = conflict = loose = 0
    used: set[int] = set()
    rest: list[Quantity] = []
    for left in a.quantities:
        hit = next(
            (
                k
                for k, right in enumerate(b.quantities)
                if k not in used
                and right.dimension == left.dimension
                and same_quantity(left, right)
            ),
            None,
        )
        if hit is None:
            rest.append(left)
        else:
            used.add(hit)
            equal += 1
    others = [q for k, q in enumerate(b.quantities) if k not in used]
    ratio = 0.0
    for left in rest:
        for right in others:
            if left.dimension != right.dimension:
                continue
            if left.dimension != "count" or _same_noun(left.noun, right.noun):
                conflict += 1
                ratio = max(ratio, _log_ratio(left.value, right.value))
            else:
                loose += 1
    dims_a, dims_b = ({q.dimension for q in v.quantities} for v in (a, b))
    clock_equal = sum(any(same_clock(x, y) for y in b.clocks) for x in a.clocks)
    date_equal = sum(any(same_date(x, y) for y in b.dates) for x in a.dates)
    shared_tags = sum(any(_same_tag(x, y) for y in b.tags) for x in a.tags)
    kinds_a, kinds_b = {k for k, _ in a.tags}, {k for k, _ in b.tags}
    versions = len(a.versions & b.versions)
    return {
        "value_equal": equal, "value_conflict": conflict, "value_loose": loose,
        "value_only_a": len(rest), "value_only_b": len(others), "value_ratio": ratio,
        "dimension_differs": float(bool(dims_a and dims_b) and not dims_a & dims_b),
        "clock_equal": clock_equal,
        "clock_conflict": float(bool(a.clocks and b.clocks) and not clock_equal),
        "clock_one": float(bool(a.clocks) != bool(b.clocks)),
        "date_equal": date_equal,
        "date_conflict": float(bool(a.dates and b.dates) and not date_equal),
        "date_one": float(bool(a.dates) != bool(b.dates)),
        "tag_equal": shared_tags,
        "tag_conflict": float(bool(a.tags and b.tags) and not shared_tags
                              and bool(kinds_a & kinds_b or "#" in kinds_a | kinds_b)),
        "tag_one": float(bool(a.tags) != bool(b.tags)),
        "version_equal": versions,
        "version_conflict": float(bool(a.versions and b.versions) and not versions),
        "year_equal": len(a.years & b.years),
        "year_conflict": float(bool(a.years and b.years) and not a.years & b.years),
        "year_one": float(bool(a.years) != bool(b.years)),
    }  # fmt: skip


def _same_noun(left: str, right: str) -> bool:
    return not left or not right or left == right or bool(concepts(left) & concepts(right))


def _same_tag(left: tuple[str, str], right: tuple[str, str]) -> bool:
    return left[1] == right[1] and (left[0] == right[0] or "#" in (left[0], right[0]))


def _log_ratio(left: float, right: float) -> float:
    if left <= 0 or right <= 0:
        return 3.0
    return min(abs(math.log(left / right)), 5.0)


def _names(a: Frame, b: Frame) -> dict[str, float]:
    shared = len(a.names & b.names)
    only_a, only_b = len(a.names - b.names), len(b.names - a.names)
    subject_in_b = a.subject in b.names or any(t.stem == a.subject for t in b.content)
    subject_in_a = b.subject in a.names or any(t.stem == b.subject for t in a.content)
    return {
        "name_shared": shared, "name_only_a": only_a, "name_only_b": only_b,
        "name_swap": float(only_a > 0 and only_b > 0),
        "name_swap_beside": float(only_a > 0 and only_b > 0 and shared > 0),
        "name_none": float(not a.names and not b.names),
        "subject_same": float(a.subject == b.subject),
        "subject_in_b": float(subject_in_b), "subject_in_a": float(subject_in_a),
        "subject_differs": float(
            bool(a.names and b.names) and not subject_in_b and not subject_in_a
        ),
    }  # fmt: skip


_KINDS: Final = (
    "environment",
    "day_part",
    "weekday",
    "month",
    "ordinal",
    "language",
    "bound",
    "colour",
)
_EMPTY: Final[frozenset[str]] = frozenset()


def _qualifiers(a: Frame, b: Frame) -> dict[str, float]:
    out: dict[str, float] = {}
    for kind in _KINDS:
        left, right = a.qualifiers.get(kind, _EMPTY), b.qualifiers.get(kind, _EMPTY)
        out[f"{kind}_differs"] = float(bool(left and right) and not left & right)
        out[f"{kind}_same"] = float(bool(left & right))
        out[f"{kind}_one"] = float(bool(left) != bool(right))
    out["qualifier_differs"] = sum(out[f"{kind}_differs"] for kind in _KINDS)
    return out


def _markers(a: Frame, b: Frame) -> dict[str, float]:
    open_a, done_b = has_any(a.low, lexicon.OPEN_TASK), has_any(b.low, lexicon.DONE)
    change_a, change_b = (has_any(f.low, lexicon.CHANGE_PHRASES) for f in (a, b))
    strong_a, strong_b = (has_any(f.low, lexicon.STRONG_CHANGE_PHRASES) for f in (a, b))
    return {
        "change_b": min(change_b, 4), "change_a": min(change_a, 4),
        "strong_b": min(strong_b, 3), "strong_a": min(strong_a, 3),
        "change_gain": float(np.clip(change_b - change_a, -3, 3)),
        "strong_gain": float(np.clip(strong_b - strong_a, -3, 3)),
        "persist_b": min(has_any(b.low, lexicon.PERSISTENCE_PHRASES), 2),
        "persist_a": min(has_any(a.low, lexicon.PERSISTENCE_PHRASES), 2),
        "correction_b": float(has_any(b.low, lexicon.CORRECTION) > 0),
        "open_a": min(open_a, 2), "open_b": min(has_any(b.low, lexicon.OPEN_TASK), 2),
        "done_b": min(done_b, 2), "done_a": min(has_any(a.low, lexicon.DONE), 2),
        "open_then_done": float(open_a > 0 and done_b > 0),
        "opinion": float(opinions(a.low) + opinions(b.low)),
    }  # fmt: skip


def _signs(a: Frame, b: Frame) -> dict[str, float]:
    exclusive_a, exclusive_b = (has_any(f.low, lexicon.EXCLUSIVE) > 0 for f in (a, b))
    negative_a, negative_b = (f.negators + f.negatives > 0 for f in (a, b))
    return {
        "exclusive_both": float(exclusive_a and exclusive_b),
        "exclusive_one": float(exclusive_a != exclusive_b),
        "one_negative": float(negative_a != negative_b),
        "sign_differs": float(a.negators % 2 != b.negators % 2),
        "negators_a": min(a.negators, 3), "negators_b": min(b.negators, 3),
        "negatives_a": min(a.negatives, 2), "negatives_b": min(b.negatives, 2),
        "one_negated": float((a.negators > 0) != (b.negators > 0)),
        "both_negated": float(a.negators > 0 and b.negators > 0),
        "parity_differs": float(a.odd != b.odd),
        "absolute_a": min(a.absolutes, 3), "absolute_b": min(b.absolutes, 3),
        "absolute_one": float((a.absolutes > 0) != (b.absolutes > 0)),
        "length_a": math.log1p(len(a.tokens)), "length_b": math.log1p(len(b.tokens)),
        "length_gap": math.log1p(len(b.tokens)) - math.log1p(len(a.tokens)),
        "language_differs": float(a.language != b.language),
        "not_english": float(a.language != "en" or b.language != "en"),
    }  # fmt: skip


def pair_features(a: Frame, b: Frame, vectors: Vectors) -> dict[str, float]:
    """All features of one pair by name."""
    out = _overlap(a, b, vectors)
    for part in (
        _compare(a.values, b.values),
        _names(a, b),
        _qualifiers(a, b),
        _markers(a, b),
        _signs(a, b),
    ):
        out |= {name: float(value) for name, value in part.items()}
    out |= topic_features(a, b, vectors)
    out |= joint_features(out)
    out["asserted"] = float(asserted(a) and asserted(b))
    out["cover_min"] = min(out["cover_a"], out["cover_b"])
    out["cover_max"] = max(out["cover_a"], out["cover_b"])
    return out


def _called(frame: Frame) -> list[str]:
    """The words of its names."""
    return [t.low for t in frame.tokens if t.stem in frame.names]


def read_batch(
    pairs: Sequence[tuple[Statement, Statement]], embed: Embed
) -> tuple[list[tuple[Frame, Frame]], Vectors]:
    """Frames of all pairs and the vectors of their texts and words, embedded in one call."""
    frames = [read_pair(a, b) for a, b in pairs]
    texts = [
        text for a, b in frames for f in (a, b)
        for text in (f.text, *(t.low for t in f.content), *_called(f))
    ]  # fmt: skip
    return frames, Vectors(embed, texts)
