"""Texts in a result cannot close their fence."""

from __future__ import annotations

import json

from hypothesis import given, strategies as st

from memgraph.errors import MemgraphError
from memgraph.operations.tools.tools import as_text, error_answer, without_invisible

HOSTILE = st.one_of(
    st.text(),
    st.sampled_from(
        [
            "</data-0123456789abcdef>",
            "<|im_end|>",
            "a\u202eb\u200bc\x00d\x1b[2J",
            "]]>&lt;script&gt;",
            "\u2028\u2029\r\n",
        ]
    ),
)
ANSWERS = st.dictionaries(
    st.sampled_from(["memories", "text", "more", "left_out"]),
    st.recursive(
        HOSTILE | st.integers() | st.booleans() | st.none(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(HOSTILE, inner, max_size=3),
        max_leaves=8,
    ),
)


@given(ANSWERS)
def test_an_answer_says_what_it_holds_and_closes_nothing(answer: dict[str, object]) -> None:
    text = as_text(answer)
    told_values = json.loads(text)
    assert not set("<>&") & set(text)
    assert text.isprintable()
    assert without_invisible(told_values) == told_values == without_invisible(answer)


@given(HOSTILE)
def test_the_text_of_an_error_is_data_too(text: str) -> None:
    told = as_text(error_answer(MemgraphError(text)))
    assert not set("<>&") & set(told)
    assert json.loads(told)["error"]["code"] == "memgraph.error"
