"""Items in the form of OpenAI's Responses interface: what is said in them, and how they return."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.errors import InvalidInput
from memgraph.rules.conversations import entry_of as joined
from memgraph.rules.conversations import parts_of
from memgraph.surfaces.adapters._openai_items import entry_of, item_of, text_of

TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=20)
PART = st.fixed_dictionaries(
    {"type": st.sampled_from(["input_text", "output_text", "refusal", "input_image", "new"])},
    optional={"text": TEXT | st.integers(), "refusal": TEXT | st.none(), "image_url": TEXT},
)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "system", "developer", "other"])},
    optional={
        "content": TEXT | st.none() | st.integers() | st.lists(PART | TEXT, max_size=4),
        "type": st.sampled_from(["message", "reasoning", "function_call"]),
        "id": TEXT,
    },
)


def user(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **more}


@given(MESSAGE)
def test_any_message_comes_back_byte_by_byte(item: dict[str, Any]) -> None:
    episodes = [(part.content, part.attributes) for part in parts_of(entry_of(item))]
    assert json.dumps(item_of(joined(episodes))) == json.dumps(item)


@pytest.mark.parametrize(
    ("item", "speaker", "text"),
    [
        (user("I live in Berlin."), "person", "I live in Berlin."),
        ({"type": "message", "role": "assistant", "content": "Fine."}, "agent", "Fine."),
        (
            user(
                [
                    {"type": "input_text", "text": "See this:"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
                    {"type": "input_text", "text": "my cat Mia"},
                ]
            ),
            "person",
            "See this:\nmy cat Mia",
        ),
        (
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "I will not."}]},
            "agent",
            "I will not.",
        ),
        ({"role": "system", "content": "You live in Berlin."}, None, ""),
        ({"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"}, None, ""),
        ({"type": "function_call_output", "call_id": "c", "output": "I am Bob."}, None, ""),
        ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}]}, None, ""),
        ({"type": "reasoning", "role": "user", "content": "no message"}, None, ""),
        (user(None), None, ""),
    ],
)
def test_users_and_assistants_speak_and_nobody_else(
    item: dict[str, Any], speaker: str | None, text: str
) -> None:
    entry = entry_of(item)
    assert (entry.speaker, entry.text, text_of(item)) == (speaker, text, text)


@pytest.mark.parametrize("item", ["text", 1, None, [], user({1, 2}), user(float("inf"))])
def test_what_is_no_json_object_is_refused(item: Any) -> None:
    with pytest.raises(InvalidInput):
        entry_of(item)
