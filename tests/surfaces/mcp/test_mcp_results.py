"""Texts in a result cannot close their fence."""

from __future__ import annotations

import json

import mcp_types as types
from hypothesis import given
from hypothesis import strategies as st

from memgraph.errors import MemgraphError
from memgraph.surfaces.mcp.resources import seen, tool_error, tool_result

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


def told(result: types.CallToolResult) -> str:
    [block] = result.content
    assert isinstance(block, types.TextContent)
    return block.text


@given(ANSWERS)
def test_an_answer_says_what_it_holds_and_closes_nothing(answer: dict[str, object]) -> None:
    result = tool_result(answer)
    text = told(result)
    told_values = json.loads(text)
    assert not set("<>&") & set(text)
    assert text.isprintable()
    assert seen(told_values) == told_values == seen(answer)


@given(HOSTILE)
def test_the_text_of_an_error_is_data_too(text: str) -> None:
    result = tool_error(MemgraphError(text))
    assert result.is_error
    assert not set("<>&") & set(told(result))
    assert json.loads(told(result))["error"]["code"] == "memgraph.error"
