"""The passages of a text that are compared with those of others."""

from __future__ import annotations

from memgraph.text.sentences import MAX_PASSAGES, MAX_WORDS, passages


def test_passages_keep_every_word_in_order() -> None:
    text = (
        "Hi! " + " ".join(f"Sentence number {n} says one more thing." for n in range(9)) + "\nEnd"
    )
    found = passages(text)
    assert " ".join(found).split() == text.split()
    assert all(len(passage.split()) <= MAX_WORDS for passage in found)
    assert len(passages(text * 40)) == MAX_PASSAGES
    assert passages(" \n ") == []
