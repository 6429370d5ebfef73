"""What the evidence forbids, whatever the weights say, and its codes for receipts and audits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from memgraph.model.enums import Relation

# (code, feature, least value), strongest evidence first.
_CODES: Final = (
    ("correction", "correction_b", 1.0),
    ("change_marker", "strong_b", 1.0),
    ("open_then_done", "open_then_done", 1.0),
    ("value_differs:number", "value_conflict", 1.0),
    ("value_differs:clock", "clock_conflict", 1.0),
    ("value_differs:date", "date_conflict", 1.0),
    ("value_differs:name", "name_swap_beside", 1.0),
    ("antonym", "antonym", 1.0),
    ("negation_flip", "scope_flip", 0.9),
    ("polarity_differs", "parity_differs", 1.0),
    ("absolute_against_instance", "absolute_one", 1.0),
    ("persistence_marker", "persist_b", 1.0),
    ("other_subject", "subject_differs", 1.0),
    ("other_number:tag", "tag_conflict", 1.0),
    ("other_version", "version_conflict", 1.0),
    ("other_environment", "environment_differs", 1.0),
    ("other_weekday", "weekday_differs", 1.0),
    ("other_year", "year_conflict", 1.0),
    ("other_bound", "bound_differs", 1.0),
    ("other_language", "language_differs", 1.0),
    ("value_equal:number", "value_equal", 1.0),
    ("value_equal:clock", "clock_equal", 1.0),
    ("value_equal:date", "date_equal", 1.0),
    ("same_subject", "subject_same", 1.0),
    ("same_words", "cover_min", 0.75),
)


_CLAIMS: Final = frozenset({Relation.CONTRADICTS, Relation.UPDATES, Relation.DUPLICATE})
_APART: Final = (
    "value_conflict", "clock_conflict", "date_conflict", "version_conflict", "tag_conflict",
    "year_conflict", "environment_differs", "weekday_differs", "colour_differs", "name_swap",
)  # fmt: skip


def ruled_out(row: Mapping[str, float]) -> frozenset[Relation]:
    """Relations that must not be said of a pair: none but compatible and unrelated where one of
    them claims nothing (a question, a heading, a bare name); no duplicate where a figure, a name
    or a qualifier tells the two apart, since a duplicate is dropped."""
    if row["asserted"] < 1.0:
        return _CLAIMS
    if row["other_thing"] > 0 or row["thing_none"] > 0:
        return _CLAIMS
    if row["apart"] > 0 or row["nothing_new"] > 0:
        return frozenset({Relation.UPDATES})
    if any(row[name] > 0 for name in _APART):
        return frozenset({Relation.DUPLICATE})
    return frozenset()


def reasons(row: Mapping[str, float]) -> tuple[str, ...]:
    """The codes whose evidence is present in a row of pair features."""
    found = tuple(code for code, feature, least in _CODES if row[feature] >= least)
    if row["cover_max"] < 0.25 and row["cosine"] < 0.2:
        return (*found, "no_common_topic")
    return found
