"""Exports of other tools, through the one door to the parsers and through a whole run."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any, get_args

import pytest

from ingest.candidates import Format, Origin, ParsedDocument
from ingest.claims import summary_of
from ingest.parse import parse_document
from ingest.pipeline import IngestPipeline
from ingest.preview import RECOGNISED, UNKNOWN_JSON, label
from ingest.reasons import RejectionReason, SkippedPart
from memgraph import Orchestrator
from memgraph.errors import IngestRejected
from memgraph.model.enums import MemoryKind, MemoryType

ROOT = Path(__file__).resolve().parents[2]
JAN_2 = 1_704_189_600


def parse(value: Any, path: str = "conversations.json", **options: Any) -> ParsedDocument:
    return parse_document(json.dumps(value).encode(), path, **options)


def said(parsed: ParsedDocument) -> list[tuple[str | None, str]]:
    return [(each.source_role, each.content) for each in parsed.candidates]


def codes(parsed: ParsedDocument) -> dict[str, int]:
    counts: dict[str, int] = summary_of(parsed.findings)["finding_counts"]
    return counts


def node(name: str, parent: str | None, text: str | None, **fields: Any) -> dict[str, Any]:
    role = fields.pop("role", "user")
    message = None
    if text is not None:
        message = {
            "author": {"role": role},
            "content": {"content_type": "text", "parts": [text]},
            "create_time": fields.pop("at", None),
            **fields,
        }
    return {"id": name, "parent": parent, "children": [], "message": message}


def chatgpt(*nodes: dict[str, Any], **fields: Any) -> dict[str, Any]:
    mapping = {each["id"]: each for each in nodes}
    return {"id": "talk", "title": "Paint", "create_time": JAN_2 + 0.5, "mapping": mapping} | fields


def recognised(content: str, path: str) -> str:
    return label(parse_document(content.encode(), path))


def test_what_is_recognised_has_its_row_in_the_guide() -> None:
    guide = (ROOT / "docs" / "guides" / "ingest.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \|", guide.split("\n## ")[1], re.MULTILINE)
    documented = {row.strip() for row in rows} - {"recognised as", "---"}
    origins = {f"{each} {'note' if each == 'Obsidian' else 'export'}" for each in get_args(Origin)}
    assert documented == {*RECOGNISED.values(), *origins, UNKNOWN_JSON}
    assert set(RECOGNISED) == set(get_args(Format))


def test_exports_are_recognised_by_their_tool() -> None:
    talk = "\n".join(["Ada: Hello Ben.", "Ben: Hi Ada.", "Ada: Tea?", "Ben: Yes."])
    memories = {"memories": [{"key": "a", "content": "Tea.", "type": "Fact"}]}
    message = {"type": "message", "user": "U1", "text": "Tea?", "ts": "1704189600.000100"}
    claude = [{"uuid": "c", "name": "Tea", "chat_messages": []}]
    mem0 = {"results": [{"id": "1", "memory": "Ada likes tea.", "user_id": "ada"}]}
    assert recognised(json.dumps([chatgpt(*BRANCHED)]), "c.json") == "ChatGPT export"
    assert recognised(json.dumps(claude), "c.json") == "Claude export"
    assert recognised(json.dumps([message]), "general/2024-01-02.json") == "Slack export"
    assert recognised(json.dumps(mem0), "m.json") == "mem0 export"
    assert recognised("We met [[Ada]].", "n.md") == "Obsidian note"
    assert recognised("We met Ada.", "n.md") == "Markdown notes"
    assert recognised("We met Ada.", "n.txt") == "plain text"
    assert recognised(talk, "n.txt") == "conversation as text"
    assert recognised(json.dumps(memories), "m.json") == "memgraph document"
    rows = [{"name": "tea", "price": 1}, {"name": "milk", "price": 2}]
    assert recognised(json.dumps(rows), "m.json") == "records as JSON"
    messages = {"messages": [{"role": "user", "content": "Hello."}]}
    assert recognised(json.dumps(messages), "m.json") == "conversation as JSON"
    record = "# 1. Tea\n\n## Status\n\nAccepted\n\n## Decision\n\nWe choose [[Tea]].\n"
    assert recognised(record, "0001-tea.md") == "decision record"


BRANCHED = (
    node("c", "b", "Blue it is.", at=JAN_2 + 30),
    node("x", "a", "Abandoned.", at=JAN_2 + 99),
    node("root", None, None),
    node("b", "a", "Blue or green?", role="assistant", at=JAN_2 + 20.25),
    node("s", "root", "Be brief.", role="system"),
    node("a", "s", "Which colour for the shed?"),
)


def test_a_chatgpt_conversation_is_its_shown_branch() -> None:
    parsed = parse([chatgpt(*BRANCHED, current_node="c")])
    assert said(parsed) == [
        ("user", "Which colour for the shed?"),
        ("assistant", "Blue or green?"),
        ("user", "Blue it is."),
    ]
    first, second, third = parsed.candidates
    assert {each.session_id for each in parsed.candidates} == {"talk"}
    assert [each.sequence for each in parsed.candidates] == [0, 1, 2]
    # What has no time of its own has that of the conversation.
    times = [each.event_time for each in parsed.candidates]
    assert times == [JAN_2 * 1000 + 500, JAN_2 * 1000 + 20_250, JAN_2 * 1000 + 30_000]
    assert (first.turn_id, first.locator) == ("a", "/0/mapping/a")
    assert (second.attributes["title"], third.kind) == ("Paint", MemoryKind.EPISODE)
    assert codes(parsed) == {"branch_left_out": 1}


def test_without_a_current_node_the_latest_leaf_ends_the_branch() -> None:
    parsed = parse(chatgpt(*BRANCHED, current_node="gone"))
    assert [text for _, text in said(parsed)] == ["Which colour for the shed?", "Abandoned."]


def test_what_nobody_said_in_a_chatgpt_conversation_is_left_out() -> None:
    hidden = {"metadata": {"is_visually_hidden_from_conversation": True}}
    parsed = parse(
        chatgpt(
            node("a", None, "Draw the shed.", content={
                "content_type": "multimodal_text",
                "parts": [{"content_type": "image_asset_pointer"}, "Draw the shed."],
            }),
            node("b", "a", "print(1)", role="assistant", recipient="python"),
            node("c", "b", "1", role="tool"),
            node("d", "c", "Thinking", role="assistant", content={"content_type": "thoughts"}),
            node("e", "d", "I am Ann.", **hidden),
            node("f", "e", "Nothing.", weight=0),
            node("g", "f", "Done.", role="assistant"),
            current_node="g",
        )
    )  # fmt: skip
    assert said(parsed) == [("user", "Draw the shed."), ("assistant", "Done.")]
    assert codes(parsed) == {"content_part_skipped": 1}


@pytest.mark.parametrize(
    ("nodes", "kept"),
    [
        ([node("a", "b", "One."), node("b", "a", "Two.")], ["One.", "Two."]),
        ([node("a", "a", "Alone.")], ["Alone."]),
        ([node("a", "gone", "Orphan."), node("b", "a", "Child.")], ["Orphan.", "Child."]),
        ([{**node("a", None, "Kept."), "parent": 7}], ["Kept."]),
        ([node("a", None, "Kept."), {"id": "b", "message": 3, "parent": "a"}], ["Kept."]),
        ([node("a", None, "When?", at=1e300)], ["When?"]),
    ],
)
def test_a_broken_chatgpt_tree_ends_in_a_bounded_result(
    nodes: list[dict[str, Any]], kept: list[str]
) -> None:
    last = nodes[-1]["id"]
    parsed = parse([chatgpt(*nodes, current_node=last), 5, {"mapping": []}])
    assert {text for _, text in said(parsed)} == set(kept)
    assert codes(parsed)["message_invalid"] >= 2


def message(name: str, sender: str, text: str, **fields: Any) -> dict[str, Any]:
    return {
        "uuid": name,
        "sender": sender,
        "text": text,
        "created_at": "2025-04-08T08:31:18.871464Z",
    } | fields


def claude(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"uuid": "talk", "name": "Fees", "chat_messages": list(messages)} | fields


def test_a_claude_conversation() -> None:
    root = "00000000-0000-4000-8000-000000000000"
    blocks = [
        {"type": "thinking", "thinking": "Hm."},
        {"type": "text", "text": "Twenty euros."},
        {"type": "tool_use", "name": "look", "input": {}},
    ]
    paste = {"file_name": "minutes.txt", "extracted_content": "The fee is 1 euro."}
    parsed = parse(
        [
            claude(
                message("a", "human", "What is the deposit?", parent_message_uuid=root),
                message("b", "assistant", "Old answer.", parent_message_uuid="a"),
                message("c", "assistant", "copy", content=blocks, parent_message_uuid="a"),
                message("d", "human", "", attachments=[paste], parent_message_uuid="c"),
                message("d", "human", "Again.", parent_message_uuid="c"),
                message("e", "system", "No such sender."),
            )
        ]
    )
    assert said(parsed) == [
        ("human", "What is the deposit?"),
        ("assistant", "Twenty euros."),
        ("human", "[minutes.txt]\nThe fee is 1 euro."),
    ]
    assert {each.event_time for each in parsed.candidates} == {1_744_101_078_871}
    assert parsed.candidates[0].attributes["title"] == "Fees"
    assert codes(parsed) == {
        "branch_left_out": 1,
        "content_part_skipped": 2,
        "message_repeated": 1,
        "message_invalid": 1,
    }


def test_an_old_claude_conversation_is_in_the_order_of_the_file() -> None:
    parsed = parse(claude(message("a", "human", "Hello."), message("b", "assistant", "Hi.")))
    assert said(parsed) == [("human", "Hello."), ("assistant", "Hi.")]


def slack(ts: str, user: str, text: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "ts": ts, "user": user, "text": text} | fields


USERS = [
    {"id": "U1", "name": "ann", "profile": {"display_name": "", "real_name": "Ann Lee"}},
    {"id": "U2", "name": "bo", "profile": {"display_name": "Bo"}},
]
DAY_1 = [
    slack("1704189600.000100", "U1", "Welcome <@U2>, see <https://x.org|the plan> &amp; <#C1|ops>"),
    slack("1704189600.000100", "U1", "Twice."),
    slack("1704189700.000100", "U1", "has joined", subtype="channel_join"),
    slack("1704189800.000100", "U2", "Which relay?", thread_ts="1704189800.000100"),
    {"type": "message", "subtype": "bot_message", "ts": "1704189900.000100", "username": "ci",
     "text": "", "attachments": [{"fallback": "Built 7."}]},
    {"text": "no stamp"},
]  # fmt: skip
DAY_2 = [
    slack("1704276000.000100", "U9", "The council relay.", thread_ts="1704189800.000100",
          user_profile={"real_name": "Cy Dent"}),
]  # fmt: skip


def test_slack_days_are_read_with_names_and_threads(orc: Orchestrator) -> None:
    zone = orc.paths.ingest / "export"
    for name, value in (
        ("users.json", USERS),
        ("ops/2024-01-02.json", DAY_1),
        ("ops/2024-01-03.json", DAY_2),
    ):
        (zone / name).parent.mkdir(parents=True, exist_ok=True)
        (zone / name).write_text(json.dumps(value))
    report = IngestPipeline(orc).run()
    assert {each.outcome for each in report} == {"processed"}
    turns = sorted(
        orc.memories.list(kinds=[MemoryKind.EPISODE]), key=lambda each: each.event_time or 0
    )
    assert [(each.session_id, each.source_role, each.content) for each in turns] == [
        ("ops/2024-01-02", "Ann Lee", "Welcome @Bo, see the plan (https://x.org) & #ops"),
        ("ops/1704189800.000100", "Bo", "Which relay?"),
        ("ops/2024-01-02", "ci", "Built 7."),
        ("ops/1704189800.000100", "Cy Dent", "The council relay."),
    ]
    assert [each.sequence for each in turns] == [0, 0, 1, 1]
    assert {each.conversation_id for one in turns for each in orc.trace(one.memory_id).sources} == {
        "ops"
    }


def test_a_slack_day_by_itself() -> None:
    parsed = parse(DAY_1, "2024-01-02.json")
    assert [role for role, _ in said(parsed)] == ["U1", "U2", "ci"]
    assert codes(parsed) == {"message_repeated": 1, "message_hidden": 1, "message_invalid": 1}


@pytest.mark.parametrize(
    "value",
    [
        [slack("1704189600.000100", "U1", 5), slack("1704189601.000100", "U1", None)],
        [slack("9" * 11 + ".1", "U1", "x"), slack("1704189601.000100", "U1", "<" * 30_000)],
        [slack("1704189600.000100", "U1", "x", user_profile=[], files=[3], attachments="no")],
    ],
)
def test_strange_slack_messages_do_no_harm(value: list[Any]) -> None:
    parsed = parse(value, "ops/2024-01-02.json")
    assert len(parsed.candidates) + len(parsed.findings) >= 1


MEM0 = [
    {"id": "1", "memory": "Lives in Braga", "user_id": "ann",
     "created_at": "2025-03-04T12:00:00-08:00", "updated_at": "2025-05-04T12:00:00-08:00"},
    {"id": "2", "memory": "Ann likes tea", "user_id": "ann",
     "metadata": {"category": "preference"}},
    {"id": "2", "memory": "Repeated", "user_id": "ann"},
    {"id": "3", "memory": "Gone", "event": "DELETE"},
    {"id": "4", "memory": ["no", "text"]},
    {"id": "5", "memory": "Works at night", "user_id": "8c5c715f-8c74", "categories": ["Work"]},
]  # fmt: skip


@pytest.mark.parametrize("value", [MEM0, {"results": MEM0}, {"count": 1, "results": MEM0}])
def test_memories_of_mem0_are_facts_about_their_user(value: Any) -> None:
    parsed = parse(value, "mem0.json")
    assert [(each.content, each.type, each.tags) for each in parsed.candidates] == [
        ("ann: Lives in Braga", MemoryType.FACT, ()),
        ("Ann likes tea", MemoryType.PREFERENCE, ("preference",)),
        ("Works at night", MemoryType.FACT, ("work",)),
    ]
    assert parsed.candidates[0].event_time == 1_746_388_800_000
    assert parsed.candidates[0].attributes["user_id"] == "ann"
    assert codes(parsed) == {"key_repeated": 1, "message_hidden": 1, "value_invalid": 1}


@pytest.mark.parametrize(
    "value",
    [
        {"mapping": [], "current_node": "x"},
        {"name": "Ann", "port": 80},
        [{"name": "Ann", "tags": ["a"]}, {"name": "Bo", "tags": []}],
        ["tea", "juice"],
        "words",
        7,
        None,
    ],
)
def test_an_unknown_shape_is_refused_with_what_was_expected(value: Any) -> None:
    with pytest.raises(IngestRejected, match="ChatGPT, Claude, Slack or mem0") as caught:
        parse(value, "x.json")
    assert caught.value.details["reason"] == RejectionReason.JSON_SHAPE_UNKNOWN
    assert caught.value.details["found"]


def test_a_table_is_a_record_for_each_row() -> None:
    rows = [{"name": "Ann", "town": "Oslo", "since": 2019, "left": None, "date": "2024-05-06"}] * 2
    parsed = parse(rows, "staff.json")
    assert [(each.locator, each.content) for each in parsed.candidates] == [
        ("/0", "name: Ann; town: Oslo; since: 2019; date: 2024-05-06"),
        ("/1", "name: Ann; town: Oslo; since: 2019; date: 2024-05-06"),
    ]
    assert parsed.candidates[0].event_time == 1_714_953_600_000


@pytest.mark.parametrize("value", [{}, [], {"messages": []}, USERS, [chatgpt()]])
def test_json_that_says_nothing(value: Any) -> None:
    parsed = parse(value)
    assert parsed.candidates == []
    assert SkippedPart.NOTHING_EXTRACTED in [each.code for each in parsed.findings]


NOTES = {
    "Work/Lending.md": (
        "---\naliases: [Loans, DB decision]\ntags: project/lending\nowner: \"[[Ann Lee]]\"\n---\n"
        "We keep ==every loan== in PostgreSQL. %% ask Tom %% ^decision\n\n"
        "> [!info]- Why\n> Members asked [[Rules#Length|for shorter loans]].\n\n"
        "![[plan.png|300]]\n"
    ),
    "Rules.md": (
        "The library lends a drill for ten days. It follows the [[DB decision]]. #policy/2025\n\n"
        "| what | who |\n| --- | --- |\n| key | [[People/Ann Lee\\|Ann]] |\n\n"
        "```\n[[no link]] #no-tag\n```\n\nIssue #123 and `[[code]]` stay as they are.\n"
    ),
    "People/Ann Lee.md": "---\ntags: ['#person']\n---\nAnn keeps the keys of the shed.\n",
}  # fmt: skip


def test_notes_of_a_vault_are_joined_by_their_links(orc: Orchestrator) -> None:
    for name, text in NOTES.items():
        (orc.paths.ingest / name).parent.mkdir(exist_ok=True)
        (orc.paths.ingest / name).write_text(text)
    report = IngestPipeline(orc).run()
    assert {each.outcome for each in report} == {"processed"}
    memories = {each.memory_id: each for each in orc.memories.list()}
    texts = {each.content: each for each in memories.values()}
    (loans,) = [each for text, each in texts.items() if "every loan" in text]
    (drill,) = [each for text, each in texts.items() if "ten days" in text]
    (ann,) = [each for text, each in texts.items() if "keys of the shed" in text]
    assert loans.content.endswith("We keep every loan in PostgreSQL.")
    assert loans.tags == ("project/lending",)
    assert (drill.tags, ann.tags) == (("policy/2025",), ("person",))
    in_code = {"[[no link]] #no-tag", "Issue #123 and [[code]] stay as they are."}
    assert {text for text in texts if "[[" in text} == in_code
    assert report[1].left_out | report[2].left_out == {"comment": 1, "picture": 1}
    edges = {frozenset((e.from_id, e.to_id)) for e in orc.graph.subgraph(list(memories)).edges}
    wanted = [(loans, drill), (loans, ann), (drill, ann)]
    assert {frozenset((a.memory_id, b.memory_id)) for a, b in wanted} <= edges


@pytest.mark.parametrize(
    "text",
    ["[[" * 5_000, "[[a]]" * 5_000, "==" * 10_000, "%%" * 10_000, "`[[a" * 5_000, "![[" * 9_000,
     "> [!" + "x" * 19_000, "#" * 19_000, "[[a]] " + "^" * 19_000, "---\n" * 5_000 + "[[a]]"],
)  # fmt: skip
def test_marks_of_a_vault_cost_no_time(text: str) -> None:
    begun = time.process_time()
    parsed = parse_document(f"{text}\n\nThe shed is [[locked]].\n".encode(), "note.md")
    assert time.process_time() - begun < 5
    assert parsed.format in ("markdown", "decision_record", "transcript")
