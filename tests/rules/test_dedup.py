"""When two texts say the same."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, strategies as st

from memgraph.rules.similarity import content_hash, is_near, jaccard, normalise_content, word_set

any_text = st.text(st.characters(), max_size=60)
words = st.frozensets(st.sampled_from("abcdefgh"))


def test_the_hash_is_sha256_of_the_folded_text() -> None:
    assert content_hash("  A\tb\r\n c. ") == hashlib.sha256(b"a b c").hexdigest()


@pytest.mark.parametrize(
    ("left", "right"),
    [("US", "us"), ("ﬁle", "file"), ("Rome", "Rome …"), ("a  b?!", "a b"), ("Straße", "STRASSE")],
)
def test_what_is_folded(left: str, right: str) -> None:
    assert content_hash(left) == content_hash(right)


@pytest.mark.parametrize(
    ("left", "right"), [("1.5 %", "15 %"), ("C++", "C"), ("to Rome", "via Rome"), ("?", "!")]
)
def test_what_is_kept_apart(left: str, right: str) -> None:
    assert content_hash(left) != content_hash(right)


@given(any_text)
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalise_content(text)
    assert normalise_content(once) == once


@given(words, words)
def test_jaccard_is_symmetric_bounded_and_one_for_equals(
    left: frozenset[str], right: frozenset[str]
) -> None:
    assert jaccard(left, right) == jaccard(right, left)
    assert 0.0 <= jaccard(left, right) <= 1.0
    assert (jaccard(left, right) == 1.0) == (left == right and bool(left))


def test_words_fold_case_width_and_apostrophes() -> None:
    assert word_set("Don’t STOP, ﬁle") == {"don't", "stop", "file"}


@pytest.mark.parametrize(
    ("left", "right", "near"),
    [
        ("The team meets on Monday.", "the team meets on monday", True),
        ("The team meets on Monday now", "The team meets on Monday", True),
        ("We now store logs on port 80", "We now store logs on port 81", False),
        ("we do deploy to all three regions", "we do not deploy to all three regions", False),
        ("they do eat meat at home today", "they do eat meat at home today isn't", False),
        ("Anna likes tea", "Boris likes coffee", False),
        ("", "", True),
        ("!", "?", False),
    ],
)
def test_near_and_different(left: str, right: str, near: bool) -> None:
    assert is_near(left, right) is is_near(right, left) is near


def test_the_threshold_is_inclusive() -> None:
    assert is_near("a b c d", "a b c")
    assert not is_near("a b c d e", "a b c")
