from __future__ import annotations

import pytest

from ingest.candidates import MAX_TURN_CHARS, ParsedDocument
from ingest.parse import parse_document
from ingest.parsers.transcript import is_transcript
from ingest.reasons import SkippedPart
from memgraph.model.enums import MemoryKind, MemoryType


def parse(text: str, path: str = "team-session-02.txt") -> ParsedDocument:
    return parse_document(text.encode(), path)


def spoken(document: ParsedDocument) -> list[tuple[str | None, str]]:
    return [(each.source_role, each.content) for each in document.candidates]


DATED = """# 1:56 pm on 8 May, 2023

Ann: Hello there.
Bob: Hi!
How are you?

Fine, I hope.
Ann: Yes."""


def test_turns_become_episodes_in_order() -> None:
    document = parse(DATED)
    assert document.format == "transcript"
    assert spoken(document) == [
        ("Ann", "Hello there."),
        ("Bob", "Hi!\nHow are you?\n\nFine, I hope."),
        ("Ann", "Yes."),
    ]
    assert [each.sequence for each in document.candidates] == [0, 1, 2]
    assert [each.locator for each in document.candidates] == ["L3-L3", "L4-L7", "L8-L8"]
    for each in document.candidates:
        assert each.kind is MemoryKind.EPISODE
        assert each.type is MemoryType.OBSERVATION
        assert each.event_time == 1683554160000
        assert (each.session_id, each.conversation_id) == ("team-session-02", "team")


def test_each_dated_heading_begins_a_session() -> None:
    text = "# 8 May 2023\nAnn: One.\nBob: Two.\n\n--- 9 May 2023 ---\nAnn: Three.\nBob: Four."
    document = parse(text, "log.txt")
    assert [each.session_id for each in document.candidates] == ["log#1", "log#1", "log#2", "log#2"]
    assert [each.sequence for each in document.candidates] == [0, 1, 0, 1]
    first, last = document.candidates[0].event_time, document.candidates[-1].event_time
    assert first is not None
    assert last == first + 86_400_000


def test_a_session_heading_is_dated_by_the_line_below_it() -> None:
    document = parse("# Session 1\n8 May 2023\nAnn: One.\nBob: Two.\nAnn: Three.")
    assert {each.session_id for each in document.candidates} == {"team-session-02"}
    assert {each.event_time for each in document.candidates} == {1683504000000}


@pytest.mark.parametrize(
    "text",
    [
        "[10:43] Ann: hi\n[10:44] Bob: hello",
        "2023-05-08 13:56 Ann: hi\n2023-05-08 13:57 Bob: hello",
        "8/13/23, 13:56 - Ann: hi\n8/13/23, 13:57 - Bob: hello",
        "8/13/23, 13:56 - Ann: hi\nBob: hello",
        "Ann [13:56]: hi\nBob [13:57]: hello\nAnn [13:58]: hi",
        "<Ann> hi\n<Bob> hello\n<Ann> hi",
        "**Ann:** hi\n\n**Bob:** hello\n\n**Ann**: hi",
        "User: hi\nAssistant: hello",
        "Ann: I think that we should go now.\nBob: Yes, I agree with you there.",
    ],
)
def test_shapes_of_transcripts(text: str) -> None:
    assert is_transcript(text)
    assert {each.source_role for each in parse(text).candidates} <= {
        "Ann",
        "Bob",
        "User",
        "Assistant",
    }


@pytest.mark.parametrize(
    "text",
    [
        "Name: memgraph\nVersion: 1\nLicense: MIT",
        "Note: keep this.\nTodo: write that.\nNote: and this.",
        "We met in Porto. Ann said: no.\nThen we left.",
        "See https://example.org: it is down.\nSee https://example.net: it is up.",
        "Shopping\n\nmilk: two\nbread: one",
    ],
)
def test_prose_and_fields_are_no_transcript(text: str) -> None:
    assert not is_transcript(text)
    assert parse(text, "notes.txt").format == "prose"


def test_a_date_of_which_the_order_is_unknown_is_reported_once() -> None:
    turns = [f"[0{day}/05/2026, 10:00] {name}: hi" for day, name in ((3, "Ann"), (4, "Bob"))]
    document = parse("\n".join(turns))
    assert {each.event_time for each in document.candidates} == {None}
    (finding,) = document.findings
    assert (finding.code, finding.locator) == (SkippedPart.DATE_NOT_UNDERSTOOD, "L1-L1")
    assert (finding.count, finding.details) == (2, {"text": "03/05/2026"})
    shown = parse("\n".join([*turns, "[25/05/2026, 10:00] Ann: hi"]))
    assert [each.event_time for each in shown.candidates][:1] == [1777802400000]  # 3 May
    assert shown.findings == []


@pytest.mark.parametrize(("name", "mark"), [("a.txt", ""), ("a.txt", "# "), ("a.md", "## ")])
def test_headings_of_unknown_order_begin_sessions_without_a_date(name: str, mark: str) -> None:
    talk = "{mark}03/05/2026\n\nAnn: Hi.\nBob: Hello.\n\n{mark}04/05/2026\n\nAnn: Bye.\n"
    document = parse(talk.format(mark=mark), name)
    assert spoken(document) == [("Ann", "Hi."), ("Bob", "Hello."), ("Ann", "Bye.")]
    assert [each.session_id for each in document.candidates] == ["a#1", "a#1", "a#2"]
    assert {each.event_time for each in document.candidates} == {None}
    assert document.candidates[2].attributes["section"] == "04/05/2026"
    (finding,) = document.findings
    assert (finding.code, finding.locator) == (SkippedPart.DATE_NOT_UNDERSTOOD, "L1-L1")
    assert (finding.count, finding.details) == (2, {"text": "03/05/2026"})
    shown = parse(talk.format(mark=mark) + "Bob: I left on 25/05/2026.\n", name)
    assert [each.event_time for each in shown.candidates][:1] == [1777766400000]  # 3 May


@pytest.mark.parametrize("day", ["03/05/2026", "12-11-10"])
def test_a_date_right_below_a_turn_is_part_of_it_while_its_order_is_unknown(day: str) -> None:
    document = parse(f"Ann: When is the visit?\nBen: It is on\n{day}\nI think.\nAnn: Thanks.\n")
    assert spoken(document)[1] == ("Ben", f"It is on\n{day}\nI think.")
    assert len({each.session_id for each in document.candidates}) == 1


def test_days_before_the_speakers_are_read_in_the_order_of_the_file() -> None:
    document = parse(
        "03/05/2026 Ann: Is anybody there?\n03/05/2026 Bob: I am here.\n13/05/2026 Ann: Where?"
    )
    assert [each.source_role for each in document.candidates] == ["Ann", "Bob", "Ann"]
    first, second, last = (each.event_time for each in document.candidates)
    assert (first, second, last) == (1777766400000, 1777766400000, 1778630400000)
    # Days alone do not make a conversation of a list.
    log = parse("2026-05-03 Postgres: upgraded to 16\n2026-05-04 Redis: restarted\n")
    assert log.format == "prose"
    ledger = "01/02/2026 Income: 400 euros\n01/03/2026 Rent: 900 euros\n"
    assert parse(ledger * 2).format == "prose"


def test_a_date_that_is_not_understood_stays_in_the_text() -> None:
    document = parse(
        "01/02/2026 Ann: The rent is due.\n01/03/2026 Bob: I paid it.\n01/04/2026 Ann: Ok"
    )
    assert [each.event_time for each in document.candidates] == [None] * 3
    assert document.candidates[1].content == "01/03/2026 I paid it."
    assert [each.code for each in document.findings] == [SkippedPart.DATE_NOT_UNDERSTOOD]


def test_undated_turns_of_a_dated_conversation_keep_their_places() -> None:
    document = parse(
        "Ann: one\n[2026-05-03 10:00] Bob: two\nAnn: three\n[2026-05-04 10:00] Bob: four"
    )
    times = [1777802400000, 1777888800000]
    assert [each.event_time for each in document.candidates] == [None, times[0], None, times[1]]
    beside = [each.attributes.get("dated_beside") for each in document.candidates]
    assert beside == [times[0], None, times[0], None]
    (finding,) = document.findings
    assert (finding.code, finding.locator, finding.count) == (SkippedPart.DATE_MISSING, "L1-L1", 2)


def test_a_turn_too_long_for_a_memory_is_cut_and_told() -> None:
    words = "word " * (MAX_TURN_CHARS // 4)
    document = parse(f"# 8 May 2023\nAnn: {words}\nBob: ok")
    assert [each.code for each in document.findings] == [SkippedPart.CONTENT_SPLIT]
    pieces = [each.content for each in document.candidates if each.source_role == "Ann"]
    assert len(pieces) == 2
    assert " ".join(pieces).split() == words.split()
    assert [each.sequence for each in document.candidates] == [0, 1, 2]


def test_an_empty_turn_is_told() -> None:
    document = parse("# 8 May 2023\nAnn:\nBob: ok\nAnn: fine")
    assert [(each.code, each.locator) for each in document.findings] == [
        (SkippedPart.MESSAGE_EMPTY, "L2-L2")
    ]
    assert len(document.candidates) == 2


def test_a_label_inside_a_turn_opens_none() -> None:
    document = parse("# 8 May 2023\nAnn: see below\nNote: this is mine\nBob: ok")
    assert spoken(document)[0] == ("Ann", "see below\nNote: this is mine")
