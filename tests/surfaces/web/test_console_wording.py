"""How the console counts, and what it says for codes."""

from __future__ import annotations

import pytest
from console_browsing import HOME, Browser, harmless

from memgraph.service import readiness
from memgraph.surfaces.web.render import REMEDIES, noted, remedy, unseen


def test_every_code_of_health_has_words_and_something_to_do() -> None:
    for code in REMEDIES:
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


def test_a_value_of_a_manifest_is_no_json() -> None:
    for value, said in (
        ({"stored": 6, "duplicate": 1_200, "rejected": 0}, "stored 6, duplicate 1,200"),
        (["a.md", True], "a.md, yes"),
        ({"stored_as": None, "partial": False}, "stored as none, partial no"),
    ):
        assert noted(value) == said


def test_what_is_left_undone_is_told_with_what_to_do(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "shortcomings", lambda _opened: ["erasure.unfinished"])
    for page in (HOME, f"{HOME}activity"):
        text = harmless(browser.page(page)).text
        assert "run the same memgraph erase again" in text
        assert "erasure.unfinished" in text
