"""Following memories and runs on the command line: what is not there is an error, not an answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from memgraph.clock import iso, parse_time
from memgraph.model.influence import Line
from memgraph.surfaces.cli.commands.influence import LINE_CHARS, _line_text

if TYPE_CHECKING:
    from conftest import CommandLine


def test_neither_a_memory_nor_a_run_is_not_found(cli: CommandLine) -> None:
    cli.remember("The oven is slow.")
    told = cli.error("grounds", "orc-1", "nope")
    assert (told["code"], told["details"]["workflow_run_id"]) == ("memory.not_found", "nope")


def test_a_graph_around_nothing_is_not_drawn(cli: CommandLine, tmp_path: Path) -> None:
    one = cli.remember("The oven is slow.")
    target = tmp_path / "x.svg"
    assert cli.error("graph", "orc-1", "nope", "-o", str(target))["code"] == "memory.not_found"
    assert not target.exists()
    assert cli.json("graph", "orc-1", "nope", one, "-o", str(target))["nodes"] == 1


def test_a_folder_that_is_not_there_is_named(cli: CommandLine, tmp_path: Path) -> None:
    cli.remember("The oven is slow.")
    folder = tmp_path / "nodir"
    told = cli.error("graph", "orc-1", "-o", str(folder / "x.svg"))
    assert (told["message"], told["details"]) == (f"no folder: {folder}", {"path": str(folder)})


def test_differences_are_told_until_now(cli: CommandLine) -> None:
    one = cli.remember("The oven is slow.")
    at = cli.json("trace", "orc-1", one)["memory"]["created_at"]
    before = iso(parse_time(at) - 1)
    assert [each["memory_id"] for each in cli.json("diff", "orc-1", before)["learnt"]] == [one]


def test_a_value_of_json_has_no_numbers_and_keeps_its_indentation() -> None:
    assert _line_text(Line(number=None, text='    "about": "Cake"')) == '    "about": "Cake"'
    assert _line_text(Line(number=7, text="  - tea")) == "7:   - tea"
    assert len(_line_text(Line(number=None, text=" " * 500 + "tea " * 500))) <= LINE_CHARS


def test_no_error_tells_the_class_of_a_validators_error(cli: CommandLine) -> None:
    cli.remember("The oven is slow.")
    tier = ("source", "trust", "orc-1", "conversation:x", "--tier", "bogus", "--reason", "x")
    for asked in (tier, ("recall", "orc-1", " ")):
        told = cli.error(*asked)
        assert "Value error" not in str(told), told
    assert "query: is empty" in cli.error("recall", "orc-1", " ")["message"]


def test_a_word_on_a_source_of_which_nothing_came_yet_is_kept_and_remarked(
    cli: CommandLine,
) -> None:
    mail = cli.root / "orc-1" / "memory" / "ingest" / "processed" / "mail"
    cli.remember("The oven is slow.", "--source-path", str(mail / "one.txt"), "--locator", "L1-L1")
    word = ("source", "trust", "orc-1", str(mail), "--tier", "low", "--reason", "offers")
    assert cli.json("source", "trust", "orc-1", "run:r9", *word[4:])["known"] is False
    assert "no memory came from it yet" in cli("source", "trust", "orc-1", "run:r9", *word[4:]).out
    cli(*word)
    [listed] = cli.json("source", "list", "orc-1")["items"]
    assert (listed["tier"], listed["told"], listed["inherited"]) == ("low", True, True)
    assert "low (inherited)" in cli("source", "list", "orc-1").out
    cli("source", "trust", "orc-1", listed["name"], *word[4:])
    assert cli.json("source", "list", "orc-1")["items"][0]["inherited"] is False
