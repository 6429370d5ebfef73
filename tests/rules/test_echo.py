"""Lines are known by a normal form; short ones, and other words, are not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.ids import short_id
from memgraph.model.conversation import SpeakerRole, voice_of
from memgraph.rules import bulletin, similarity

ID = "fact_01ARZ3NDEKTSV4RRFFQ69G5FAV"
SAID = "Mira repairs clocks in Graz."
FORM = "mira repairs clocks in graz"


@pytest.mark.parametrize(
    "line",
    [
        SAID,
        SAID.upper(),
        f"- {SAID} [{ID}]",
        f"  * **Mira** repairs _clocks_ in Graz ({ID})",
        f"> Fact: {SAID}",
        f"1. “{SAID}”",
        f"user: “{SAID}”",
        f"Mira: “{SAID}”",
        "- [x] `Mira` repairs clocks in Graz!!",
        "Mira repairs\u00a0clocks in Graz…",
        "Ｍｉｒａ repairs clocks in Graz",
        f"{SAID} [{ID}, {ID}]",
        "\\- Mira repairs clocks in Graz",
    ],
)
def test_what_dresses_a_line_is_taken_off(line: str) -> None:
    assert similarity.normal_form(line) == FORM


@pytest.mark.parametrize(
    "line",
    [
        "Mira repairs clocks in Linz.",
        "Office: Mira repairs clocks in Graz.",
        "Mira does not repair clocks in Graz.",
        "2026-01-05 Mira repairs clocks in Graz.",
        "Mira repairs 3 clocks in Graz.",
    ],
)
def test_what_says_something_else_is_another_line(line: str) -> None:
    assert similarity.normal_form(line) != FORM


@pytest.mark.parametrize("line", ["ok", "Yes, please!", "Thank you", "12 34 56 78 90", "", "..."])
def test_short_lines_say_nothing(line: str) -> None:
    assert not similarity.line_hashes(line)


def test_scripts_without_blanks_are_counted_by_characters() -> None:
    assert similarity.line_hashes("彼は時計を修理する。") == similarity.line_hashes(
        "「彼は時計を修理する」"
    )
    assert not similarity.line_hashes("はい。")


def test_each_sentence_counts_by_itself() -> None:
    two = f"{SAID} She learnt it from her uncle."
    assert similarity.line_hashes(SAID) < similarity.line_hashes(two)
    assert len(similarity.line_hashes(two)) == 3


def test_a_wrapped_line_is_one() -> None:
    assert similarity.line_hashes("Mira repairs clocks\nin Graz.") == similarity.line_hashes(SAID)


def test_a_bulletin_is_known_by_the_texts_in_it() -> None:
    own = bulletin.LayoutEntry(SAID, (ID,))
    lines = [
        replace(own, lead="Fact: "),
        replace(own, lead="2026-01-05 (accepted) ", file="clocks.md"),
        replace(own, lead="(until 2026-01-05) "),
        replace(own, lead="Uncertain (0.31): ", mark="contradicted by Q69G5FAV (2026-01-05)"),
        replace(
            own,
            lead="2026-01-05 ",
            against=bulletin.LayoutEntry("Mira paints.", (ID,), "undated ", "clocks.md"),
        ),
        bulletin.LayoutEntry(
            "Mira paints.", (ID,), "2026-01-05 ", against=replace(own, lead="undated ")
        ),
    ]
    rendered = [bulletin.render_line(line, cite=short_id) for line in lines]
    for line in rendered:
        assert similarity.line_hashes(SAID) <= similarity.line_hashes(line)


@given(st.text())
def test_any_text_has_a_form_and_keeps_it(text: str) -> None:
    form = similarity.normal_form(text)
    assert form == form.strip()
    assert all(-(2**63) <= each < 2**63 for each in similarity.line_hashes(text))


@given(st.lists(st.sampled_from(["Mira", "mends", "old", "clocks", "7"]), min_size=4, max_size=12))
def test_how_a_line_is_set_does_not_matter(words: list[str]) -> None:
    line = " ".join(words)
    rendered = bulletin.render_line(bulletin.LayoutEntry(f"Fact: {line}", (ID,)))
    assert similarity.normal_form(rendered) == similarity.normal_form(line)


@pytest.mark.parametrize(
    ("line", "bare"),
    [
        ("As I recall, Mira repairs clocks.", "Mira repairs clocks."),
        ("Yes, you told me that Mira repairs clocks.", "Mira repairs clocks."),
        ("According to my notes, Mira repairs clocks.", "Mira repairs clocks."),
        ("Sure! I remember that Mira repairs clocks.", "Mira repairs clocks."),
        ("Mira repairs clocks.", "Mira repairs clocks."),
        ("Not so: Mira repairs clocks.", "Not so: Mira repairs clocks."),
    ],
)
def test_how_an_agent_begins(line: str, bare: str) -> None:
    assert similarity.without_lead_in(line) == bare


@pytest.mark.parametrize(
    ("role", "told_as", "voice"),
    [
        ("User", None, SpeakerRole.PERSON),
        ("human", None, SpeakerRole.PERSON),
        ("Mira", "person", SpeakerRole.PERSON),
        ("assistant", "person", SpeakerRole.PERSON),
        ("Mira", None, SpeakerRole.NAMED),
        ("customer", None, SpeakerRole.NAMED),
        ("Mira", "nonsense", SpeakerRole.NAMED),
        ("Mira", "agent", SpeakerRole.AGENT),
        ("user", "agent", SpeakerRole.AGENT),
        ("Bot", None, SpeakerRole.AGENT),
        ("Tool", None, SpeakerRole.SILENT),
        ("tool", "agent", SpeakerRole.SILENT),
        ("  ", None, SpeakerRole.SILENT),
        (None, None, SpeakerRole.SILENT),
    ],
)
def test_only_a_person_adds_to_what_is_known(
    role: str | None, told_as: str | None, voice: SpeakerRole
) -> None:
    assert voice_of(role, told_as) is voice
    person = voice is SpeakerRole.PERSON
    assert (similarity.known_echo(voice) is None) is person
    assert (
        similarity.is_agent(similarity.heard_role(role, told_as)) is not person
        or told_as == "nonsense"
    )
