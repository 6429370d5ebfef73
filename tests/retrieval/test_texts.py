"""Words found in the bytes of a pool are those that reading every text would find."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, strategies as st

from memgraph.retrieval import texts as texts_module
from memgraph.retrieval.texts import TextWords
from memgraph.text.stem import stem, words

PIECES = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["herons", "Heron’s", "naïve", "paintings", "ÉTÉ", "2024", "a_b", "\x02", "ß"]),
)
TEXTS = st.lists(PIECES, max_size=8).map(" ".join)


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_counts_and_lengths_agree_with_the_words_of_each_text(contents: list[str]) -> None:
    expected = [Counter(stem(word) for word in words(text)) for text in contents]
    # Pairs of CJK characters are looked for as such, inside words too.
    known = {one for each in expected for one in each}
    stems = sorted(one for one in known if len(one) > 2 or one.isascii())
    texts = TextWords(contents)
    assert texts.lengths.tolist() == [sum(each.values()) for each in expected]
    assert texts.counts(stems).tolist() == [[each[one] for one in stems] for each in expected]


def test_words_and_runs_of_digits() -> None:
    texts = TextWords(["Yesterday, it rained.", "In 2023!", "room 12", "yesterdays", "—YESTERDAY—"])
    assert texts.any_of("yesterday ago").tolist() == [1.0, 0.0, 0.0, 0.0, 1.0]
    assert texts.digits(4).tolist() == [0.0, 1.0, 0.0, 0.0, 0.0]
    assert texts.digits(1).tolist() == [0.0, 1.0, 1.0, 0.0, 0.0]


def test_a_kept_text_is_read_once_until_it_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts_module, "MOST_KEPT", 2)
    read: list[str] = []
    of_one = texts_module._Text.read

    def counted(content: str) -> object:
        read.append(content)
        return of_one(content)

    monkeypatch.setattr(texts_module._Text, "read", counted)
    texts_module.forget()
    TextWords(["cat", "two", "cat"])
    TextWords(["three", "cat", "two"])
    assert read == ["cat", "two", "three"]
    texts_module.forget()
    assert TextWords(["cat"]).counts(["cat"]).tolist() == [[1.0]]
    assert read == ["cat", "two", "three", "cat"]
