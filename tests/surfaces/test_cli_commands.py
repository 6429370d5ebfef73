"""What each command does, and the one shape of its JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_origin

import pytest

from docs.references import command_paths, derived_commands
from ingest.claims import claim
from ingest.pipeline import MAX_ATTEMPTS

if TYPE_CHECKING:
    from conftest import CommandLine

MakeContradiction = Callable[[], tuple[str, str, str]]
WHY = ("--reason", "asked")
KEY_FOR = ("--orchestrator", "orc-1", "--permission", "read")
PROTOCOL = "mcp"
"""Its standard output carries a protocol alone: nothing where nobody asks for anything."""
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
DOCS = PAGE.partition("# Reference")[0]


ABOUT_ALL = (
    *("ingest", "sessions", "bulletin", "contradictions", "sources"),
    *("receipts", "bulletins", "files", "reflection", "list"),
    *("entities", "stats", "verify", "repair", "erasures", "rebuild"),
    "jobs",
)
"""The commands that need an orchestrator alone."""


def documented(command: str) -> set[str]:
    """The keys of ``data``: of variants the first; of a derived command those of its operation."""
    row = re.search(rf"^\| `{re.escape(command)}` \| (.+?)(?:;.*)? \|$", DOCS, re.MULTILINE)
    told = set(re.findall(r"`([^`]+)`", row[1])) if row else set()
    declared = derived_commands().get(command)
    if declared is None or get_origin(declared.sent) is dict:
        assert row is not None, command
        return told
    if declared.result is None:
        return told | declared.in_path
    plain = getattr(declared.sent, "__dataclass_fields__", ["items"])
    return told | set(getattr(declared.sent, "model_fields", plain))


def examples(cli: CommandLine, make: MakeContradiction, folder: Path) -> dict[str, Sequence[str]]:
    """Arguments with which each command succeeds."""
    cli.remember("Mrs. Vitalia Borges signed the lease.")
    one, other, edge = make()
    third = cli.remember("The shop sells bread.")
    no_case = cli.json("relate", "orc-1", third, "Contradicts", one)["edge_id"]
    earlier, later = cli.remember("The cake costs 3 EUR."), cli.remember("The cake costs 4 EUR.")
    mark = cli.json("relate", "orc-1", later, "Updates", earlier, "--weight", "0.6")["edge_id"]
    noted = cli.remember("The oven is slow.", "--scope", "session", "--scope-id", "t1")
    cli.remember("Ada Okafor bakes with Nora Quill.")
    receipt = cli.json("recall", "orc-1", "bread")["receipt_id"]
    cli("bulletin", "orc-1")
    bulletin = cli.json("bulletins", "orc-1")["bulletins"][0]["bulletin_id"]
    cli("say", "orc-1", "We open at nine.", "--session-id", "tuesday")
    backup = str(folder / "orc-1.backup")
    key_ids = [str(cli.json("key", "create", name, *KEY_FOR)["key_id"]) for name in "abc"]
    cli.json("key", "revoke", key_ids[2])
    return {
        **{name: [name, "orc-1"] for name in ABOUT_ALL},
        "init": ["init", "orc-2"],
        "remember": ["remember", "orc-1", "something"],
        "say": ["say", "orc-1", "Hello.", "--session-id", "monday"],
        "relate": ["relate", "orc-1", one, "relatedto", other],
        "recall": ["recall", "orc-1", "when does the shop close?"],
        "context": ["context", "orc-1", "when does the shop close?", "--explain"],
        "subgraph": ["subgraph", "orc-1", one],
        "resolve": ["resolve", "orc-1", edge, "--winner", one, *WHY],
        "reopen": ["reopen", "orc-1", edge, *WHY],
        "case": ["case", "orc-1", edge],
        "dismiss": ["dismiss", "orc-1", no_case, *WHY],
        "accept": ["accept", "orc-1", mark, *WHY],
        "trace": ["trace", "orc-1", one],
        "diff": ["diff", "orc-1", "2000-01-01", "2100-01-01"],
        "impact": ["impact", "orc-1", one],
        "grounds": ["grounds", "orc-1", one],
        "correct": ["correct", "orc-1", one, "The shop closes at 21:00.", *WHY],
        "confirm": ["confirm", "orc-1", third],
        "retract": ["retract", "orc-1", third, *WHY],
        "restore-memory": ["restore-memory", "orc-1", third, *WHY],
        "retract-source": ["retract-source", "orc-1", "--conversation-id", "tuesday", *WHY],
        "promote": [
            *("promote", "orc-1", noted, "--session", "t1"),
            *("--to", "project", "--scope-id", "web"),
        ],
        "tier": ["tier", "orc-1", "project", "web"],
        "receipt": ["receipt", "orc-1", receipt],
        "issued-bulletin": ["issued-bulletin", "orc-1", bulletin],
        "get": ["get", "orc-1", one],
        "merge-entities": ["merge-entities", "orc-1", "Ada Okafor", "Nora Quill", *WHY],
        "remove-alias": ["remove-alias", "orc-1", "Ada Okafor", "Nora Quill", *WHY],
        "protect-entity": ["protect-entity", "orc-1", "Vitalia Borges", *WHY],
        "entity": ["entity", "orc-1", "Nora Quill"],
        "end-session": ["end-session", "orc-1", "tuesday"],
        "erase": ["erase", "orc-1", "--memory-id", third, *WHY],
        "key create": ["key", "create", "app", *KEY_FOR],
        "key list": ["key", "list"],
        "key revoke": ["key", "revoke", key_ids[0]],
        "key rotate": ["key", "rotate", key_ids[1]],
        "key forget": ["key", "forget", key_ids[2]],
        "mcp": ["mcp", "--orchestrator", "orc-1"],
        "worker": ["worker", "--once"],
        "run": ["run", "orc-1", "decay"],
        "embed": ["embed", "orc-1", "--retry"],
        "export": ["export", "orc-1", str(folder / "export.jsonl")],
        "backup": ["backup", "orc-1", backup],
        "restore": ["restore", "orc-1", backup],
        "health": ["health"],
        "config show": ["config", "show", "orc-1"],
        "config check": ["config", "check"],
    }


def test_every_command_prints_the_one_documented_shape(
    cli: CommandLine, contradiction: MakeContradiction, tmp_path: Path
) -> None:
    given = examples(cli, contradiction, tmp_path)
    wrong = []
    # These take a server, a model or a signal, and have tests of their own.
    elsewhere = {"migrate-store", "ask", "serve"}
    paths = {path for path in command_paths() if not path.startswith("bench ")}
    assert given.keys() | elsewhere == paths | derived_commands().keys()
    for command, arguments in given.items():
        ran = cli(*arguments, "--json")
        assert (ran.code, ran.err) == (0, ""), command
        if command == PROTOCOL:
            assert (ran.out, documented(command)) == ("", set())
            continue
        # Before its numbers a worker tells of each run: which jobs are due depends on the time.
        *runs, told = map(json.loads, ran.out.splitlines())
        assert command == "worker" or not runs
        assert all(list(each) == ["ok", "command", "data"] for each in [*runs, told])
        assert (told["ok"], told["command"]) == (True, command)
        if set(told["data"]) != documented(command):
            wrong.append((command, sorted(set(told["data"]) ^ documented(command))))
    assert not wrong


def test_common_options_count_before_the_command_and_after_it_the_later_wins(
    cli: CommandLine, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    assert cli("--root", str(other), "init", "orc-9", "--json").code == 0
    assert (other / "orc-9" / "memory" / "memory.db").is_file()
    ran = cli("--json", "--root", str(cli.root), "health", "--root", str(other))
    assert [each["orchestrator"] for each in json.loads(ran.out)["data"]["orchestrators"]] == [
        "orc-9"
    ]


def test_a_memory_is_stored_once_and_shown_as_it_was_given(cli: CommandLine) -> None:
    given = ("Backups are kept for 30 days.", "--type", "decision", "--importance", "80")
    told = cli.json("remember", "orc-1", *given, "--tag", "ops", "--attributes", '{"n": 1}')
    assert told["outcome"] == "stored"
    assert told["embedding"] == {"embedded": 1, "pending": 0}
    assert cli.json("remember", "orc-1", *given)["outcome"] == "duplicate"
    memory = cli.json("get", "orc-1", told["memory_id"])
    assert memory["content"] == "Backups are kept for 30 days."
    assert (memory["type"], memory["importance"], memory["tags"]) == ("Decision", 80, ["ops"])
    assert memory["attributes"] == {"n": 1}
    cli.json("confirm", "orc-1", told["memory_id"], "--actor", "ben")
    assert cli.json("trace", "orc-1", told["memory_id"])["journal"][-1]["actor"] == "ben"
    shown = cli("get", "orc-1", told["memory_id"]).out
    assert "Backups are kept for 30 days." in shown
    assert "Decision, active" in shown


def test_content_and_questions_come_from_standard_input_too(cli: CommandLine) -> None:
    stored = cli.json("remember", "orc-1", "-", stdin="Two lines\nof text.\n")["memory_id"]
    memory = cli.json("get", "orc-1", stored)
    assert memory["content"] == "Two lines\nof text."
    found = cli.json("recall", "orc-1", "-", stdin="which lines?")
    assert [each["memory"]["memory_id"] for each in found["items"]] == [stored]


def test_recall_tells_sources_and_explains_every_leg_and_modifier(cli: CommandLine) -> None:
    notes = cli.root / "orc-1" / "memory" / "ingest" / "notes.md"
    source = ("--source-path", str(notes), "--locator", "L3-L4")
    kept = cli.remember("The shop closes at 20:00.", *source)
    out = cli("recall", "orc-1", "when does the shop close?", "--explain").out
    assert "Fact (notes.md:3): The shop closes at 20:00." in out
    [item] = cli.json("recall", "orc-1", "when does the shop close?")["items"]
    [row] = [line for line in out.splitlines() if line.startswith(f"{kept[-6:].lower()} ")]
    for leg, rank in item["legs"].items():
        assert f"{leg} {rank}" in row
    for name, factor in item["modifiers"].items():
        assert factor == 1 or f"{name} {factor:.4g}" in row


def test_recall_shows_a_memory_as_one_line_and_says_what_it_lacked(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.remember("Where the shop sells bread\n\nAt the counter.\nAnd at the door.")
    told = cli("recall", "orc-1", "shop bread").out
    assert ", Fact: Where the shop sells bread At the counter. And at the door. #" in told
    # Another model than the stored vectors are of.
    monkeypatch.setenv("MEMGRAPH_MEMORY__EMBEDDING__PROVIDER", "fake")
    found = cli.json("recall", "orc-1", "shop")
    assert len(found["items"]) == 1
    codes = [each["code"] for each in found["degraded"]]
    assert codes
    assert f"degraded[{codes[0]}]" in cli("recall", "orc-1", "shop").err


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    """A folder with files of four kinds, of which one is rejected and one is not copied."""
    folder = tmp_path / "papers"
    (folder / "more").mkdir(parents=True)
    notes = "See [[Shed]].\n\n- [ ] Water the plants\n"
    talk = "Ada: Hello Ben.\nBen: Hi Ada.\nAda: Tea?\nBen: Yes.\n"
    (folder / "notes.md").write_text(notes, encoding="utf-8")
    (folder / "more" / "talk.txt").write_text(talk, encoding="utf-8")
    (folder / "broken.json").write_text('{"a": 1}', encoding="utf-8")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    return folder


def test_dates_that_are_not_understood_are_shown(cli: CommandLine, tmp_path: Path) -> None:
    days = "".join(
        f"## Visit of Lena, 0{day}/05/2026\u202e\n\nItem {day}.\n\n" for day in range(1, 6)
    )
    (tmp_path / "n.md").write_text(f"---\ndate: seen 03/04/2026\n---\n{days}")
    for options in (["--dry-run"], []):
        shown = " ".join(cli("ingest", "orc-1", str(tmp_path / "n.md"), *options).out.split())
        # Of 05/05 the order does not matter. What stands beside a date may be private.
        assert "5 date_not_understood ('03/04/2026', '01/05/2026', '02/05/2026')" in shown


def test_files_are_ingested_told_one_by_one_and_taken_once(cli: CommandLine, papers: Path) -> None:
    refused = cli.error("ingest", "orc-1", str(papers))
    assert refused["code"] == "ingest.rejected"
    told = refused["details"]
    outcomes = {each["path"]: each["outcome"] for each in told["files"]}
    assert outcomes == {
        "notes.md": "processed",
        "more/talk.txt": "processed",
        "broken.json": "rejected",
    }
    assert told["totals"] == {"processed": 2, "rejected": 1}
    assert [Path(each["path"]).name for each in told["not_copied"]] == ["picture.png"]
    assert told["embedding"]["pending"] == 0
    for dry in ([], ["--dry-run"]):
        again = cli("ingest", "orc-1", str(papers / "notes.md"), *dry).out
        assert "duplicate" in again
        assert "the same content as processed/notes.md" in " ".join(again.split())
    papers.joinpath("notes.md").write_text(papers.joinpath("notes.md").read_text() + "\nIt rains.")
    assert "known already" in cli("ingest", "orc-1", str(papers / "notes.md")).out
    assert cli("ingest", "orc-1").out.startswith("the drop zone is empty: name files")
    (todo,) = cli.json("list", "orc-1", "--type", "Todo")["items"]
    assert todo["content"] == "Water the plants"


def test_a_held_file_is_named_with_what_to_do_and_tried_again_when_asked(
    cli: CommandLine, tmp_path: Path
) -> None:
    zone = cli.root / "orc-1" / "memory" / "ingest"
    (zone / "note.md").write_text("The key of the shed is with Bo.\n")
    held = claim(zone, "note.md", at=1_000)
    assert held is not None
    held.attempts = MAX_ATTEMPTS
    held.save()
    for options, outcome in ((["--dry-run"], "held"), ([], "held"), ([], "skipped")):
        told = cli.error("ingest", "orc-1", *options)["details"]
        assert told["totals"] == {outcome: 1}
    assert "memgraph ingest --retry" in cli("health").out
    for options in (["--dry-run"], []):
        assert cli.json("ingest", "orc-1", "--retry", *options)["totals"] == {"processed": 1}
    assert "ingest.held" not in cli("health").out


def test_a_dry_run_shows_what_a_run_does_and_writes_nothing(cli: CommandLine, papers: Path) -> None:
    (papers / "again.md").write_bytes((papers / "notes.md").read_bytes())
    (papers / "dated.md").write_text("## 03/05/2026\n\nThe shed is open.\n")
    # The date in a file that waits shows the order of both.
    lies = "## 25/05/2026\n\nWe decided to dig.\n"
    (cli.root / "orc-1" / "memory" / "ingest" / "lies.md").write_text(lies)
    before = contents(cli.root)
    refused = cli.error("ingest", "orc-1", str(papers), "--dry-run")
    assert contents(cli.root) == before
    seen = {each["path"]: each for each in refused["details"]["files"]}
    assert sorted(seen[each]["memories"] for each in ("again.md", "notes.md")) == [0, 2]
    assert seen["lies.md"]["types"] == {"Observation": 1}
    assert {path: each["recognised"] for path, each in seen.items()} == {
        "again.md": "Obsidian note",
        "notes.md": "Obsidian note",
        "more/talk.txt": "conversation as text",
        "broken.json": "unknown JSON",
        "dated.md": "Markdown notes",
        "lies.md": "Markdown notes",
    }
    done = cli.error("ingest", "orc-1", str(papers))
    assert (refused["code"], refused["message"]) == (done["code"], done["message"])
    for key in ("totals", "not_copied"):
        assert refused["details"][key] == done["details"][key]
    for each in done["details"]["files"]:
        assert seen[each["path"]]["reason"] == each["reason"]
        stored = each["counts"].get("memories", {}).get("stored", 0)
        # Which of two files with one content is taken first is left open.
        if each["path"] not in ("again.md", "notes.md"):
            assert seen[each["path"]]["memories"] == stored
            assert seen[each["path"]]["findings"] == each["findings"] == {}


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(each.relative_to(folder)): each.read_bytes()
        for each in sorted(folder.rglob("*"))
        if each.is_file() and each.suffix not in (".log", ".lock", ".db-shm")
    }


def test_what_is_stored_cannot_act_on_the_terminal(
    cli: CommandLine, contradiction: MakeContradiction
) -> None:
    hostile = "\x1b]0;title\x07\x1b[2J[bold red]x[/bold red] \u202egnihtemos\u2066 \x9b31m"
    path = f"{cli.root}/orc-1/memory/ingest/a\x1b[2J/[b]b"
    one = cli.remember(hostile, "--tag", "[red]t\x1b", "--source-path", path)
    other = cli.remember("plain")
    cli.json("relate", "orc-1", other, "Contradicts", one, "--reason", hostile)
    for command in (
        ["get", one],
        ["list"],
        ["recall", "x"],
        ["recall", "x", "--explain"],
        ["trace", one],
        ["contradictions"],
        ["subgraph", one],
        ["bulletin"],
    ):
        for options in ([], ["--json"]):
            ran = cli(command[0], "orc-1", *command[1:], *options)
            assert ran.code == 0
            for char in "\x1b\x07\x9b\u202e\u2066":
                assert char not in ran.out, command
    assert "[bold red]x[/bold red]" in cli("list", "orc-1").out


def test_settings_are_shown_with_their_origins(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = cli.root / "orc-1" / "memory" / "config.toml"
    file.write_text("[memory.retrieval]\ntop_n = 7\n", encoding="utf-8")
    monkeypatch.setenv("MEMGRAPH_MEMORY__RETRIEVAL__RRF_K", "61")
    shown = cli.json("config", "show", "orc-1", "--changed")
    assert shown["settings"] == [
        {"key": "memory.retrieval.top_n", "value": 7, "origin": str(file)},
        {
            "key": "memory.retrieval.rrf_k",
            "value": 61,
            "origin": "MEMGRAPH_MEMORY__RETRIEVAL__RRF_K",
        },
    ]
    everything = cli.json("config", "show")["settings"]
    assert {each["key"] for each in everything} > {
        "memory.enabled",
        "memory.scope.cross_orchestrator",
    }
    assert str(file) in cli("config", "show", "orc-1").out


def test_verify_finds_what_was_changed_behind_the_journal(cli: CommandLine) -> None:
    import pysqlite3.dbapi2 as sqlite

    stored = cli.remember("True.")
    last = cli("verify", "orc-1").out.splitlines()[-1]
    assert re.fullmatch(r"OK: 1 entry, chain intact, last at \d{4}-\d\d-\d\d \d\d:\d\d UTC", last)
    with sqlite.connect(cli.database()) as connection:
        connection.execute("UPDATE memories SET agent_id = 'x' WHERE memory_id = ?", (stored,))
    connection.close()
    error = cli.error("verify", "orc-1")
    assert error["code"] == "storage.corrupt"
    found: list[dict[str, Any]] = error["details"]["findings"]
    expected = [("memory.edited", stored), ("table.edited", "memories")]
    assert [(each["code"], each["subject"]) for each in found] == expected
    out = cli("verify", "orc-1").out
    assert stored in out
    assert out.splitlines()[-1].startswith("NOT OK: 2 findings (1 x memory.edited, 1 x table.")


def test_repair_tells_what_is_lost_and_goes_on_when_it_is_told_to(cli: CommandLine) -> None:
    import pysqlite3.dbapi2 as sqlite

    cli.remember("One.")
    cli.remember("Two.")
    assert re.search(r"hash +[0-9a-f]{64}\n", cli("repair", "orc-1").out)
    assert cli.json("repair", "orc-1")["lost"] == 0
    with sqlite.connect(cli.database()) as connection:
        connection.execute("DELETE FROM audit_log WHERE seq = (SELECT max(seq) FROM audit_log)")
    connection.close()
    assert cli.error("remember", "orc-1", "Three.")["code"] == "journal.broken"
    assert cli.error("repair", "orc-1")["details"]["lost"] == 1
    assert cli("health", "orc-1").code == 1
    told = cli("repair", "orc-1", "--accept", "the disk lost it").out
    assert re.fullmatch(r"accepted the journal, which ends at entry \d+: 1 .* lost\n", told)
    assert cli.json("repair", "orc-1", "--accept", "again")["accepted"]
    cli.remember("Three.")
    assert cli.json("health", "orc-1")["orchestrators"][0]["status"] == "ready"
