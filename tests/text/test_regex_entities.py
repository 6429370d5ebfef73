"""What the rules find in labelled texts, in hostile ones, and in any text at all."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from memgraph.model.enums import EntityType
from memgraph.text.entities import extract

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("MEMGRAPH_SHARED", ROOT.parent / "shared"))
DEV = SHARED / "data" / "labels" / "entities-dev.jsonl"
LABELLED = Path(__file__).parent / "labelled.txt"

Span = tuple[int, int, str]

TYPES = {
    "p": "person",
    "j": "project",
    "o": "organization",
    "l": "location",
    "e": "email",
    "u": "url",
    "d": "date",
    "h": "hashtag",
    "m": "mention",
}


def labelled_texts() -> list[tuple[str, set[Span]]]:
    lines = LABELLED.read_text(encoding="utf-8").splitlines()
    return [parse(line) for line in lines if line and not line.startswith("# ")]


def parse(line: str) -> tuple[str, set[Span]]:
    """``[Marta|p] left`` -> the text and its spans; a span of type x is none."""
    text, spans, position = "", set(), 0
    for match in re.finditer(r"\[([^\]|]+)\|(\w)\]", line):
        text += line[position : match.start()]
        if match[2] in TYPES:
            spans.add((len(text), len(text) + len(match[1]), TYPES[match[2]]))
        text += match[1]
        position = match.end()
    return text + line[position:], spans


def found(text: str) -> set[Span]:
    return {(span.start, span.end, span.type.value) for span in extract(text)}


def names(text: str, kind: EntityType) -> list[str]:
    return [span.text for span in extract(text) if span.type is kind]


def f1(gold: list[set[Span]], predicted: list[set[Span]]) -> float:
    hits = sum(len(g & p) for g, p in zip(gold, predicted, strict=True))
    return 2 * hits / (sum(map(len, gold)) + sum(map(len, predicted)))


def test_labelled_texts_are_read_well() -> None:
    texts = labelled_texts()
    assert len(texts) >= 55
    assert f1([spans for _, spans in texts], [found(text) for text, _ in texts]) >= 0.9


@pytest.mark.skipif(not DEV.exists(), reason="the labelled lines are not at hand")
def test_development_lines_are_read_well() -> None:
    rows = [json.loads(line) for line in DEV.read_text(encoding="utf-8").splitlines()]
    gold = [{(e["start"], e["end"], e["type"]) for e in row["entities"]} for row in rows]
    assert f1(gold, [found(row["text"]) for row in rows]) >= 0.75


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("due 2026-03-09T10:00Z", ["2026-03-09"]),
        ("on Friday, 3 July 2026, and 4 July", ["Friday, 3 July 2026", "4 July"]),
        ("the 14th of August", ["14th of August"]),
        ("Sept. 8, 2025 or August 9", ["Sept. 8, 2025", "August 9"]),
        ("am Mittwoch, den 7. Mai 2026", ["Mittwoch, den 7. Mai 2026"]),
        ("bis 7.5. oder am 08.06.2026", ["7.5.", "08.06.2026"]),
        ("le 1er mai et le lundi 3 mars 2025", ["1er mai", "lundi 3 mars 2025"]),
        ("el 22 de abril de 2025, en abril de 2024", ["22 de abril de 2025", "abril de 2024"]),
        ("2026年5月12日（火）と6月1日", ["2026年5月12日（火）", "6月1日"]),
        ("05/14/2026 and 14/05/2026", ["05/14/2026", "14/05/2026"]),
        ("in March 2026.", ["March 2026"]),
        ("in May, on Monday, in 2026, at 12:30, for 3 days, 5 % of 9.5", []),
        ("version 3.11.2, host 10.0.4.17, 45/45/2026, 3 marbles, we may 5 times", []),
    ],
)
def test_dates(text: str, dates: list[str]) -> None:
    assert names(text, EntityType.DATE) == dates


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("see (https://example.org/a_(b)).", ["https://example.org/a_(b)"]),
        ("WWW.example.org, then", ["WWW.example.org"]),
        ("git+ssh://git@example.org/x.git!", ["git+ssh://git@example.org/x.git"]),
        ("nothing://here and www. alone", []),
    ],
)
def test_urls(text: str, urls: list[str]) -> None:
    assert names(text, EntityType.URL) == urls


def test_addresses_handles_and_tags() -> None:
    text = (
        "mail a.b+c@example.co.uk, ask @jo-doe or @Ana_1; #ready #902 #c0ffee `@cache` @app.get()"
    )
    assert names(text, EntityType.EMAIL) == ["a.b+c@example.co.uk"]
    assert names(text, EntityType.MENTION) == ["@jo-doe", "@Ana_1"]
    assert names(text, EntityType.HASHTAG) == ["#ready"]


def test_the_surroundings_tell_a_person_from_a_place() -> None:
    text = "Florence said she was born in Florence."
    assert [span.type for span in extract(text)] == [EntityType.PERSON, EntityType.LOCATION]


def test_a_month_needs_more_than_its_name_to_be_a_person() -> None:
    assert found("Nothing happened in April or June.") == set()
    assert names("April Jones may join in June.", EntityType.PERSON) == ["April Jones"]


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
def test_spans_lie_in_the_text_in_order_without_overlap(text: str) -> None:
    end = 0
    for span in extract(text):
        assert end <= span.start < span.end <= len(text)
        assert text[span.start : span.end] == span.text
        assert 0.0 < span.confidence <= 1.0
        end = span.end


PIECES = [
    "a", "A", "@", "#", "`", "://", "www.", ".", "1", " ", "1 ", "May ", "3 May ", "Ab ", "(", ")",
    "'s", "-", "http://", "a@b.", "田中", "さん", "von ", "University of ", "\n", "12/", "aprile-",
]  # fmt: skip


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=4))
def test_hostile_texts_cost_no_more_than_their_length(pieces: list[str]) -> None:
    unit = "".join(pieces)
    small, large = unit * (4_000 // len(unit)), unit * (32_000 // len(unit))
    begin = time.process_time()
    extract(small)
    middle = time.process_time()
    extract(large)
    # Eight times the length; anything quadratic would take sixty-four times as long.
    assert time.process_time() - middle <= 30 * (middle - begin) + 0.5


def test_an_address_is_found_after_letters_that_are_longer_in_lower_case() -> None:
    assert [span.text for span in extract("İİİ www.example.com")] == ["www.example.com"]
