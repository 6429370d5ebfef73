"""What an auditor is told by the commands: words, whole lines, and what may be done next."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memgraph import MemoryService

if TYPE_CHECKING:
    from conftest import CommandLine

MakeContradiction = Callable[[], tuple[str, str, str]]
WHY = ("--reason", "asked for")


def test_a_case_tells_how_to_decide_it_and_how_it_was_decided(
    cli: CommandLine, contradiction: MakeContradiction
) -> None:
    older, newer, edge = contradiction()
    case = cli("case", "orc-1", edge).out
    mark = edge[-6:].lower()
    assert case.startswith(f"{mark}  [2] contradicts [1], open since 20")
    assert "The shop closes at 20:00. #" in case
    suggested = [line for line in case.splitlines() if line.strip().startswith("suggestion")]
    assert " ".join(suggested[0].split()).startswith("suggestion neither side")
    assert older not in case
    assert "resolve or dismiss a contradiction" in case
    neither = cli("resolve", "orc-1", edge, "--winner", "fact_none", *WHY)
    assert older[-6:].lower() in neither.err
    assert newer[-6:].lower() in neither.err
    won = cli("resolve", "orc-1", edge, "--winner", older, "--reason", "the poster says eight").out
    assert won == f"resolved {mark}: {older[-6:].lower()} prevails\n"
    listed = cli("diff", "orc-1", "yesterday").out.partition("resolved (1)")[2]
    assert "winner" in listed
    assert "the poster says eight" in listed
    for command in (("case", "orc-1", edge), ("contradictions", "orc-1", "--resolved")):
        told = cli(*command).out
        assert told.startswith(f"{mark}  [2] is replaced by [1], resolved on 20")
        assert ", raised on 20" in told
        assert f"{older[-6:].lower()} prevails" in told
    cli("reopen", "orc-1", edge, *WHY)
    cli("dismiss", "orc-1", edge, "--reason", "summer and winter")
    assert "both are correct: summer and winter" in cli("case", "orc-1", edge).out
    cli("reopen", "orc-1", edge, *WHY)
    cli("retract", "orc-1", newer, *WHY)
    assert cli("contradictions", "orc-1").out.startswith("nothing to decide\n")
    for command in (("contradictions", "orc-1", "--memory-id", newer), ("case", "orc-1", edge)):
        assert "one side is no longer in force" in cli(*command).out


def test_a_mark_is_listed_with_both_lines_and_decided_by_its_short_id(cli: CommandLine) -> None:
    older = cli.remember("The gate closes at nine.", "--event-time", "2026-01-01")
    newer = cli.remember("The gate closes at ten now.", "--event-time", "2026-03-01")
    with MemoryService(cli.root, background=False) as service:
        orc = service.orchestrator("orc-1")
        edge = orc.relate(newer, "Updates", older, weight=0.9, reason="probably changes: The gate")
    mark, first, second = (each[-6:].lower() for each in (edge, older, newer))
    pair = (
        f"{mark}  [2] probably changes [1] (90%), open since ",
        f"[1] Thu 2026-01-01, Fact: The gate closes at nine. #{first}",
        f"[2] Sun 2026-03-01, Fact: The gate closes at ten now. #{second}",
        "memgraph accept or dismiss a change",
    )
    commands = ("contradictions",), ("get", first), ("get", newer), ("case", mark)
    for name, *ids in commands:
        command = (name, "orc-1", *ids)
        shown = cli(*command).out
        assert [line for line in pair if line not in shown] == [], command
    traced = cli("trace", "orc-1", older).out
    assert f"{second}  Fact: The gate closes at ten now. probably changes this (90%" in traced
    assert traced.count("ten now") == 1
    recalled = cli("recall", "orc-1", "when does the gate close?").out
    assert f"probably changed by [1] (90%, {mark})" in recalled
    assert cli.json("contradictions", "orc-1", "--no-changes")["items"] == []
    assert cli("accept", "orc-1", mark, *WHY).out.startswith(f"accepted {mark}: ")
    assert cli.json("get", "orc-1", older)["status"] == "superseded"
    traced = cli("trace", "orc-1", older).out
    assert f"replaces this ({WHY[-1]})" in traced
    assert f"superseded by user: replaced by {second}: {WHY[-1]}" in traced
    assert cli("contradictions", "orc-1").out.startswith("nothing to decide\n")
    listing = ("contradictions", "orc-1", "--resolved")
    for command in (("case", "orc-1", edge), listing):
        decided = cli(*command).out
        assert decided.startswith(f"{mark}  [2] replaces [1], resolved on 20")
        assert f"decision: {second} prevails: {WHY[-1]}" in decided
    cli("retract", "orc-1", newer, *WHY)
    cli("restore-memory", "orc-1", older, *WHY)
    undone = cli(*listing).out
    assert "undone since" in undone
    assert "prevails" not in undone


def test_a_mark_is_named_by_a_side_that_has_no_other(cli: CommandLine) -> None:
    one, two, three = (cli.remember(f"The gate closes at {hour}.") for hour in ("one", "two", "6"))
    cli.json("relate", "orc-1", two, "Contradicts", one)
    cli.json("relate", "orc-1", three, "Contradicts", one)
    several = cli.error("dismiss", "orc-1", one[-6:], *WHY)
    assert (several["code"], len(several["details"]["candidates"])) == ("memory.conflict", 2)
    assert cli("dismiss", "orc-1", two[-6:], *WHY).code == 0
    [left] = cli.json("contradictions", "orc-1")["items"]
    assert left["edge"]["from_id"] == three
    assert cli.error("dismiss", "orc-1", "zzzzzz", *WHY)["code"] == "memory.not_found"
    # A pair that leaves nothing to decide is not meant while another does.
    cli.json("relate", "orc-1", two, "Contradicts", three)
    cli("retract", "orc-1", two, *WHY)
    assert cli("dismiss", "orc-1", three[-6:], *WHY).out.startswith("dismissed")
    assert cli.json("contradictions", "orc-1")["items"] == []


def test_a_node_of_a_tree_is_one_line_in_a_pipe(cli: CommandLine) -> None:
    said_in = "minutes of the annual meeting, " * 6 + "page 9"
    memory = cli.remember("The fee is 20 EUR.", "--conversation-id", said_in)
    for told in (cli("trace", "orc-1", memory).out, cli("grounds", "orc-1", memory).out):
        assert any(f"from conversation {said_in}" in line for line in told.splitlines())
    assert cli("subgraph", "orc-1", "fact_none").out == "missing  fact_none\n"


def test_a_receipt_is_shown_in_words_with_how_its_memories_begin(cli: CommandLine) -> None:
    told = cli.remember("The shop sells bread.")
    asked = ("context", "orc-1", "which bread?", "--agent-id", "baker", "--budget-tokens", "300")
    receipt = cli.json("receipt", "orc-1", cli.json(*asked)["receipt_id"])
    assert (receipt["query"], receipt["query_sha256"]) == ("", sha256(b"which bread?").hexdigest())
    shown = cli("receipt", "orc-1", receipt["receipt_id"]).out
    assert "{" not in shown
    [item] = receipt["items"]
    legs = (f"{leg} {rank}" for leg, rank in item["legs"].items())
    parts = (receipt["query_sha256"], "baker", "300", "clearance Internal", *legs)
    for each in (*parts, told[-6:].lower(), "The shop sells bread."):
        assert each in shown


def test_a_retraction_of_a_path_that_has_nothing_left_names_others_of_its_name_or_the_list(
    cli: CommandLine, tmp_path: Path
) -> None:
    note = tmp_path / "visit.md"
    note.write_text("The barn creaks at night.\n")
    cli("ingest", "orc-1", str(note))
    retraction = ("retract-source", "orc-1", "--path", "visit.md", *WHY)
    assert "repeat the command with --yes" in cli(*retraction).out
    assert cli(*retraction, "--yes").out.startswith("1 memory retracted\n")
    others = "`memgraph sources` lists all sources"
    for _ in range(2):
        for more, done in (((), "would be retracted"), (("--yes",), "retracted")):
            title = cli(*retraction, *more).out.partition("\n")[0]
            assert title == f"0 memories {done}: none is left of this source; {others}"
        note.write_text("The barn creaks at dawn.\n")
        cli("ingest", "orc-1", str(note))
        others = "dropped under the same name, and kept: visit~2.md"


def test_an_erased_memory_is_nowhere_called_retracted(cli: CommandLine) -> None:
    kept = cli.remember("The shop sells bread.")
    gone = cli.remember("The baker sleeps above the shop.")
    cli("relate", "orc-1", gone, "PartOf", kept)
    receipt = cli.json("recall", "orc-1", "where does the baker sleep?")["receipt_id"]
    done = cli("erase", "orc-1", "--memory-id", gone, "--yes", *WHY).out
    assert done.startswith("1 memory erased")
    [listed] = cli.json("erasures", "orc-1")["erasures"]
    assert listed["erasure_id"] in done
    for command in (("trace", "orc-1", gone), ("impact", "orc-1", gone), ("impact", "orc-1", kept)):
        told = cli(*command).out
        assert f"{gone[-6:].lower()}  Fact, erased\n" in told
    assert "[erased]" in cli("receipt", "orc-1", receipt).out
    assert gone[-6:].lower() not in cli("list", "orc-1", "--status", "retracted").out
    listed = cli("list", "orc-1", "--status", "erased").out
    assert gone[-6:].lower() in listed
    assert "erased" in listed
    assert "retracted" not in listed


def undone(cli: CommandLine, name: str = "orc-1") -> tuple[list[str], list[str]]:
    """The erasures of an orchestrator that a restore undid, and the codes of its health."""
    listed = cli.json("erasures", name)["undone"]
    with MemoryService(cli.root, background=False) as service:
        return [each["erasure_id"] for each in listed], service.health(name)["degraded"]


def backup(cli: CommandLine, folder: Path) -> tuple[str, ...]:
    """Write a backup; return the command that restores it."""
    restore = ("restore", "orc-1", str(folder / "orc-1.backup"))
    assert cli("backup", *restore[1:], "--force").code == 0
    return restore


def test_a_restore_lists_the_erasures_that_it_undid_until_they_are_done_again(
    cli: CommandLine, tmp_path: Path
) -> None:
    secret = cli.remember("Ada keeps the key under the pot.")
    restore = backup(cli, tmp_path)
    unrelated = cli.json(*restore)
    assert (unrelated["code"], unrelated["undone"]) == (None, [])
    later = cli.remember("The code of the safe is 4711.")
    erase = ("erase", "orc-1", *WHY, "--yes", "--memory-id")
    erased = [cli.json(*erase, memory_id)["erasure_id"] for memory_id in (secret, later)]
    # The second restore replaces a database that knows of them by the entry of the first.
    for ran in (cli(*restore, "--json"), cli(*restore, "--json")):
        assert ran.data["code"] == "erasure.undone"
        assert "erase again" in ran.data["message"]
        fields = ("erasure_id", "target", "memory_ids", "restored")
        assert [tuple(item[name] for name in fields) for item in ran.data["undone"]] == [
            (erased[0], secret, [secret], 1),
            (erased[1], later, [later], 0),
        ]
        assert "the pot" not in ran.out
    assert cli.json("get", "orc-1", secret)["content"]
    shown = cli(*restore).out
    assert [text for text in ("erase again", *erased) if text not in shown] == []
    copied = cli.json(*restore, "--as", "orc-2")
    assert [item["erasure_id"] for item in copied["undone"]] == erased
    # Of the other one nothing is back.
    assert undone(cli) == ([erased[0]], ["erasure.undone"])
    listed = cli("erasures", "orc-1").out
    assert listed.startswith("undone (1)")
    assert erased[0] in listed
    assert "erase again" in cli("health").out
    assert cli.json(*erase, secret)["remains"] == []
    assert undone(cli) == ([], [])
    assert undone(cli, "orc-2") == ([erased[0]], ["erasure.undone"])
    assert cli.json(*backup(cli, tmp_path))["code"] is None


@pytest.mark.parametrize("by", ["text", "memory-id"])
def test_a_memory_of_an_overwritten_line_is_erased_again_after_a_restore(
    cli: CommandLine, tmp_path: Path, by: str
) -> None:
    note = tmp_path / "mini.txt"
    note.write_text("Ann: Lorna Vale keeps the spare key at the bakery.\nBen: I did not know.\n")
    cli("ingest", "orc-1", str(note))
    [item] = cli.json("recall", "orc-1", "Lorna Vale")["items"][:1]
    restore = backup(cli, tmp_path)
    memory_id = item["memory"]["memory_id"]
    target = "Lorna Vale" if by == "text" else memory_id
    erase = ("erase", "orc-1", *WHY, "--yes", f"--{by}", target)
    first = cli.json(*erase)
    cli.json(*restore)
    again = cli.json(*erase)
    for report in (first, again):
        assert (report["memory_ids"], report["remains"]) == ([memory_id], [])
    # What the first one left in the line is no string to search for.
    assert again["searched"]["strings"] == first["searched"]["strings"]
    assert undone(cli) == ([], [])


def test_an_unfinished_erasure_is_listed_without_its_text(cli: CommandLine, tmp_path: Path) -> None:
    note, twice = tmp_path / "mini.txt", tmp_path / "twice.txt"
    note.write_text("Ann: Lorna Vale keeps the spare key at the bakery.\nBen: I did not know.\n")
    cli("ingest", "orc-1", str(note))
    [kept] = cli.root.rglob("processed/mini.txt")
    twice.hardlink_to(kept)
    erase = ("erase", "orc-1", *WHY, "--yes", "--text", "Lorna Vale")
    assert cli(*erase).code != 0
    place = "memory/ingest/processed/mini.txt"
    item = cli.json("erasures", "orc-1")["unfinished"]
    assert item.pop("erasure_id").startswith("era_")
    assert item.pop("started_at")
    codes = ["file.refused", "residue.found"]
    places = {"remains": [place], "files_refused": [place]}
    assert item == {"kind": "text", "unfinished": codes, **places}
    shown = cli("erasures", "orc-1").out
    assert [text for text in ("text", place, *codes) if text not in shown] == []
    assert "Lorna" not in shown
    twice.unlink()
    cli.json(*erase)
    listed = cli.json("erasures", "orc-1")
    assert (len(listed["erasures"]), listed["unfinished"]) == (1, None)


def test_a_diff_names_a_restore_and_calls_an_erased_memory_erased(
    cli: CommandLine, tmp_path: Path
) -> None:
    gone = cli.remember("Ada keeps the key under the pot.")
    cli.json("erase", "orc-1", *WHY, "--yes", "--memory-id", gone)
    restore = backup(cli, tmp_path)
    assert cli.json("diff", "orc-1", "yesterday")["restores"] == []
    cli.remember("The shop sells bread.")
    assert cli(*restore, "--reason", "a bad import").code == 0
    listed = cli("diff", "orc-1", "yesterday").out
    [learnt] = [line for line in listed.splitlines() if line.strip().startswith(gone[-6:].lower())][
        :1
    ]
    assert "[erased]" in learnt
    assert "restores (1)" in listed
    found = cli.json("diff", "orc-1", "yesterday")
    [restored] = found["restores"]
    assert restored["reason"] == "a bad import"
    assert restored["taken_at"] < restored["at"]
    assert found["counts"]["restores"] == 1
    assert [each["text"] for each in found["learnt"]] == ["[erased]"]


def test_a_restored_text_is_erased_again_by_its_memories_or_by_the_text_but_not_by_its_digest(
    cli: CommandLine, tmp_path: Path
) -> None:
    told = cli.remember("Otto Brill's locker is number 44.")
    restore = backup(cli, tmp_path)
    erase = ("erase", "orc-1", *WHY, "--yes")
    digest = cli.json(*erase, "--text", "Otto Brill")["target"]
    for again in (("--memory-id", told), ("--text", "otto brill")):
        assert cli(*restore).code == 0
        listed = cli("erasures", "orc-1").out
        assert f"digest {digest[:8]}…" in listed
        assert digest not in listed
        refused = cli(*erase, "--text", digest.upper())
        assert refused.code == 2
        assert "digest of an erased text" in refused.err
        # A memory with nothing but the digest leaves it in the journal, too.
        cli.json(*erase, "--memory-id", cli.remember(digest))
        waiting = cli.json("erasures", "orc-1")["undone"]
        assert {each["target"]: each["restored"] for each in waiting}[digest] == 1
        assert "whole ids" in cli("health").out
        cli.json(*erase, *again)
        assert undone(cli) == ([], [])


def test_a_restore_says_what_damaged_journals_leave_unknown_of_erasures(
    cli: CommandLine, tmp_path: Path
) -> None:
    cli.remember("The shop sells bread.")
    restore = backup(cli, tmp_path)
    change = "UPDATE audit_log SET action = ?, subject = NULL, details = ? WHERE seq = 1"
    for entry in (
        ("restore", "[]"),
        ("restore", '{"undone": ["erasure"]}'),
        ("restore", '{"undone": ' + "[" * 20_000 + "]" * 20_000 + "}"),
        ("erasure", "null"),
        ("erasure", '{"erasure_id": 1}'),
        None,
    ):
        if entry is None:
            cli.database().write_bytes(b"no database")
        else:
            with closing(sqlite3.connect(cli.database())) as damaged, damaged:
                assert damaged.execute(change, entry).rowcount == 1
        done = cli.json(*restore)
        assert (done["code"], done["undone"]) == ("erasure.unknown", []), str(entry)[:30]
    # It is listed until somebody who knows accepts it, and by a restore over what it left, too.
    assert cli.json(*restore)["code"] == "erasure.unknown"
    assert "unknown at" in cli("erasures", "orc-1").out
    assert "--accept" in cli("health").out
    assert undone(cli) == ([], ["erasure.unknown"])
    assert cli("repair", "orc-1", "--accept", "there were none").code == 0
    assert undone(cli) == ([], [])
    assert cli.json(*restore)["code"] is None
    cli.database().unlink()
    assert cli.json(*restore)["code"] is None
    erased = cli.json("erase", "orc-1", "--text", "bread", *WHY, "--yes")["erasure_id"]
    with closing(sqlite3.connect(restore[-1])) as damaged, damaged:
        damaged.execute(change, ("restore", "null"))
    # Of a backup whose journal cannot be read, it is not known what was erased before it.
    done = cli.json(*restore, "--accept-findings")
    assert (done["code"], [each["erasure_id"] for each in done["undone"]]) == (
        "erasure.undone",
        [erased],
    )
