"""Words that exclude one another: opposites and members of one kind."""

from __future__ import annotations

import pytest

from memgraph.classification.relation_kinds import exclude, opposed
from memgraph.classification.relation_tokens import stem, tokenize


@pytest.mark.parametrize(
    ("one", "other", "excluded"),
    [
        ("red", "green", True),
        ("Rust", "Java", True),
        ("trains", "buses", True),
        ("red", "red", False),
        ("red", "Tuesday", False),
        ("harp", "ferry", False),
    ],
)
def test_members_of_one_kind_exclude_one_another(one: str, other: str, excluded: bool) -> None:
    left, right = stem(one.lower()), stem(other.lower())
    assert exclude(left, right) is excluded
    assert exclude(right, left) is excluded


@pytest.mark.parametrize(
    ("one", "other", "opposite"),
    [
        ("open", "closed", True),
        ("signed", "unsigned", True),
        ("complete", "incomplete", True),
        ("windows", "windowless", True),
        ("open", "open", False),
        ("port", "import", False),
        ("form", "inform", False),
        ("art", "inart", False),
    ],
)
def test_opposites_are_listed_or_bear_a_prefix(one: str, other: str, opposite: bool) -> None:
    (left,), (right,) = tokenize(one), tokenize(other)
    assert opposed(left, right) is opposite
    assert opposed(right, left) is opposite
