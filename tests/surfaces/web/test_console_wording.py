"""How the console counts, and what it says for codes."""

from __future__ import annotations

import re

import pytest

from memgraph import MemoryService
from memgraph.surfaces.web.render import (
    REMEDIES,
    noted,
    remedy,
    unseen,
)


def test_every_code_of_health_has_words_and_something_to_do() -> None:
    told = re.findall(r"``([a-z_]+\.[a-z_]+)``", MemoryService.health.__doc__ or "")
    assert len(told) >= 10
    assert set(told) == set(REMEDIES)
    for code in told:
        assert remedy(code).endswith(".")
        assert code not in remedy(code)
    assert remedy("a_new.code") == "a new code."


def test_characters_that_are_not_shown_are_named() -> None:
    assert unseen("plain, שלום, 👩\u200d👧, می\u200cروم\n\tend\r\n") == []
    assert unseen("pay \u202eevil\u202c now \u202e") == [
        "U+202E right-to-left override (2)",
        "U+202C pop directional formatting (1)",
    ]
    # Letters that a model reads and nobody sees.
    assert unseen("ok" + "".join(chr(0xE0000 + ord(each)) for each in "aa")) == [
        "U+E0061 tag latin small letter a (2)"
    ]
    assert unseen("bell\x07") == ["U+0007 control (1)"]
    hidden = "\u2028\u2800\u034f\u3164\u115f\ufe00\U000e0101\u180b"
    assert [each[:7].rstrip() for each in unseen(f"a{'b'.join(hidden)}")] == [
        f"U+{ord(each):04X}" for each in hidden
    ]


def test_a_look_of_a_sign_is_no_hidden_text_and_a_chain_of_looks_is() -> None:
    assert unseen("I ❤\ufe0f this, 1\ufe0f\u20e3 ‼\ufe0f, سنة \u0601١٤٤٥") == []
    assert unseen("I ❤\ufe0f\ufe0f\ufe0e") == [
        "U+FE0F variation selector-16 (1)",
        "U+FE0E variation selector-15 (1)",
    ]
    assert unseen("a\ufe0eb\ufe0f") != []


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"stored": 6, "duplicate": 1_200, "rejected": 0}, "6 stored, 1,200 duplicate"),
        ({"edges": 0, "memories": 0}, "none"),
        (True, "yes"),
        (["a.md", "b.md"], "a.md, b.md"),
        ({"path": "a.md", "stored_as": None}, "path a.md, stored as none"),
        ({"limit": 3, "partial": False}, "3 limit, partial no"),
        ([{"from": "a", "lines": [1, 2]}, {}], "(from a, lines (1, 2)), (none)"),
    ],
)
def test_a_value_of_a_manifest_is_no_json(value: object, said: str) -> None:
    assert noted(value) == said
