"""Text from outside on its way to a terminal."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter

import pytest
from hypothesis import given, strategies as st

from memgraph.surfaces.cli.screen import Screen, json_line, plain

ANY_TEXT = st.text(st.characters(codec=None))
HARMLESS = "\u200c\u200d\u00ad"
ACTING = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def acting(text: str) -> list[str]:
    """Characters that a terminal could obey."""
    return [one for one in text if one not in HARMLESS and unicodedata.category(one) in ACTING]


@given(ANY_TEXT)
def test_nothing_in_a_shown_text_acts_on_a_terminal(text: str) -> None:
    assert acting(plain(text)) == []
    assert set(acting(plain(text, keep_lines=True))) <= {"\n"}


def test_what_would_act_is_shown_as_an_escape_and_the_rest_as_it_is() -> None:
    assert plain("\x1b[31mred, a\u202eb\x9b2J, two\nlines") == (
        "\\x1b[31mred, a\\u202eb\\x9b2J, two lines"
    )
    for text in ("[bold]tags[/bold] :smile:", "Grüße, 日本語, 👩‍👩‍👧"):
        assert plain(text) == text


@given(st.recursive(st.text() | st.integers() | st.none(), st.lists), st.booleans())
def test_json_is_one_line_without_acting_characters_and_comes_back(
    value: object, ascii_only: bool
) -> None:
    line = json_line(value, ascii_only=ascii_only)
    assert acting(line) == []
    assert line.isascii() or not ascii_only
    assert json.loads(line) == value


@pytest.mark.parametrize("width", [20, 40, 80])
@pytest.mark.parametrize("letters", [6, 30, 90])
def test_no_table_is_too_narrow_for_an_id_or_loses_a_text(
    width: int, letters: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    row = ["x" * letters, "[red]rain[/red] and wind", "", "日本語" * 20, "2026-11-30"]
    columns = ("id", "text", "reason", "name", "date")
    Screen().table(columns, [row])
    told = capsys.readouterr().out
    assert row[0] in told
    assert "reason" not in told
    words = "".join((*row, *columns)).replace("reason", "").replace(" ", "")
    assert Counter(told) >= Counter(words)
