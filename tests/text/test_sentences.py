from __future__ import annotations

import time

import pytest
from hypothesis import given, strategies as st

from memgraph.text.sentences import split_sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["We run v1.2.3 in production.", "See https://example.org/a.b?c=d.e for more."],
        ["Dr. Adeyemi agreed.", "So did Mr. Brown, e.g. in March."],
        ["J. R. Lee wrote it.", "It cost 3.50 euros."],
        ["Am 8. Mai kam er.", "Z.B. am Abend."],
        ["Is it on?", "Yes!", "Good."],
        ['He said "stop."', "Then he left."],
        ["\u4eca\u65e5\u306f\u6674\u308c\u3002", "\u660e\u65e5\u306f\u96e8\u3002"],
        ["Logs, metrics, etc.", "All of it is kept."],
        ["The U.S. office is closed.", "Ring back."],
        ["1. Clone the repository.", "Then build it."],
        ["no full stop at the end"],
        ["wait for it... and go on"],
    ],
)
def test_splits_where_sentences_end(sentences: list[str]) -> None:
    parts = split_sentences(" ".join(sentences))
    assert parts == sentences


@given(st.text(max_size=500))
def test_no_word_is_lost(text: str) -> None:
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())


@pytest.mark.parametrize("unit", [".", ". ", "a. ", "1. ", "...' ", "!", "x"])
def test_long_input_is_no_trouble(unit: str) -> None:
    text = unit * 50_000
    started = time.process_time()
    parts = split_sentences(text)
    # Generous: quadratic behaviour takes minutes at this length.
    assert time.process_time() - started < 20
    assert len("".join(parts)) <= len(text)
