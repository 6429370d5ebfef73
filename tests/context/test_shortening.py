"""An output of any size becomes one that an item holds."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given, strategies as st

from memgraph.context.stores import MAX_OUTPUT_CHARS, output_payload, shortened
from memgraph.errors import InvalidInput

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=400)


@given(texts, st.integers(100, 300))
def test_a_shortened_text_keeps_its_ends_and_says_what_is_gone(text: str, limit: int) -> None:
    short = shortened(text, limit)
    assert len(json.dumps(short, ensure_ascii=False)) <= limit
    if short == text:
        return
    head, mark, tail = short.partition("\n[… ")
    assert mark
    number, _, tail = tail.partition(" characters left out …]\n")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert int(number.replace(",", "")) == len(text) - len(head) - len(tail) > 0


@pytest.mark.parametrize("output", ["x" * 100, {"hits": [1, 2.5, None, True]}, [], None, 0, ""])
def test_a_short_output_stays_what_it_is(output: object) -> None:
    _, told = output_payload(output)
    assert told == {"output": output}


def test_a_long_output_is_shortened_and_known_by_its_digest() -> None:
    output = "first\n" + "\x07" * MAX_OUTPUT_CHARS + "\nlast"
    text, told = output_payload(output)
    assert text == told["output"]
    assert text.startswith("first\n")
    assert text.endswith("\nlast")
    assert len(json.dumps(told, ensure_ascii=False)) < MAX_OUTPUT_CHARS + 200
    assert told["shortened"] is True
    assert told["length"] == len(output)
    assert told["sha256"] == hashlib.sha256(output.encode()).hexdigest()


deep: list[object] = []
for _ in range(100_000):
    deep = [deep]


@pytest.mark.parametrize("output", [object(), {1, 2}, float("nan"), b"bytes", deep])
def test_what_is_no_json_is_refused(output: object) -> None:
    with pytest.raises(InvalidInput):
        output_payload(output)
