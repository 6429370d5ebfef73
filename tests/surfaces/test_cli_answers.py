"""What a person and a program are told by the commands that read, promote and erase."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memgraph.clock import iso, parse_time
from memgraph.ids import short_id
from memgraph.model.influence import SourceLine
from memgraph.surfaces.cli.operations import REACH
from memgraph.surfaces.cli.render import LINE_CHARS, LINES

if TYPE_CHECKING:
    from conftest import CommandLine

WHY = ("--reason", "asked for")
PROJECT = ("--scope", "project", "--scope-id", "web")


def test_it_is_the_block_before_a_message(cli: CommandLine) -> None:
    oven = cli.remember("The oven is slow.")
    for number in range(9):
        cli.remember(f"Rule {number} of the bakery.")
    told = cli("context", "orc-1", "what about the oven", "--explain").out
    assert told.startswith("Records from memory, oldest first:")
    assert "Fact: The oven is slow.\n" in told
    assert oven[-6:].lower() in told
    data = cli.json("context", "orc-1", "rules of the bakery", "--budget-tokens", "150")
    assert data["token_cost"] <= 150
    assert data["left_out"] > 0


def test_an_empty_context_says_why(cli: CommandLine) -> None:
    ran = cli("context", "orc-1", "oven")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith("empty[nothing_known]: ")
    assert cli.json("context", "orc-1", "oven")["empty"] == "nothing_known"
    cli.remember("The oven is slow.")
    ran = cli("recall", "orc-1", "oven", "--token-budget", "1", "--explain")
    assert (ran.code, ran.out.splitlines()) == (0, ["the token budget is too small"])
    assert cli.json("context", "orc-1", "oven")["empty"] is None
    ran = cli("context", "orc-1", "oven", "--budget-tokens", "3")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith("empty[budget_too_small]: the budget is too small")


def test_differences_are_told_until_now(cli: CommandLine) -> None:
    one = cli.remember("The oven is slow.")
    at = cli.json("trace", "orc-1", one)["memory"]["created_at"]
    before = iso(parse_time(at) - 1)
    for since in (before, "yesterday", "last week"):
        told = cli.json("diff", "orc-1", since)["learnt"]
        assert [each["memory_id"] for each in told] == [one], since
    assert "id       text" in cli("diff", "orc-1", "yesterday").out
    assert "yesterday" in cli.error("diff", "orc-1", "soon")["message"]


def test_a_value_of_json_has_no_numbers_and_keeps_its_indentation() -> None:
    line = LINES["SourceLine"]
    assert line(SourceLine(number=None, text='    "about": "Cake"'), {}) == '    "about": "Cake"'
    assert line(SourceLine(number=7, text="  - tea"), {}) == "7:   - tea"
    assert len(line(SourceLine(number=None, text=" " * 500 + "tea " * 500), {})) <= LINE_CHARS


def test_what_takes_a_persons_consent_takes_yes(cli: CommandLine) -> None:
    old = cli.remember("Answers are short.", *PROJECT, "--type", "Preference")
    up = ("promote", "orc-1", old, "--to", "global", "--project", "web")
    error = cli.error(*up)
    assert error["code"] == "access.confirmation_missing"
    assert "Answers are short." in error["message"]
    assert "--yes" in error["message"]
    assert cli(*up).code == 1
    assert cli.json("tier", "orc-1", "global")["count"] == 0
    assert cli.json(*up, "--yes")["to"] == "global"


def test_a_dry_run_shows_what_goes_and_what_stays(cli: CommandLine) -> None:
    other = cli.remember("The bakery of Ada Okafor closes at noon.")
    secret = cli.remember("Ada Okafor keeps the spare key under the third flower pot.")
    cli.remember("Tom Reed told: Ada Okafor keeps the spare key under the third flower pot.")
    told = cli.json("erase", "orc-1", "--memory-id", secret, *WHY)
    assert told["preview"]["begins"][secret].startswith("Ada Okafor keeps")
    looked = cli("erase", "orc-1", "--memory-id", secret, *WHY).out
    assert "  preview\n" in looked
    assert f"    begins\n      {short_id(secret)}  " in looked
    assert "  this\n" not in looked
    for each in (secret, "Ada Okafor keeps the spare", "says_it"):
        assert each in looked
    named = cli.json("erase", "orc-1", "--entity", "Ada Okafor", *WHY)
    assert other in named["memory_ids"]
    assert "Ada Okafor" in named["preview"]["names"]
    assert "Ada Okafor" in cli("erase", "orc-1", "--entity", "Ada Okafor", *WHY).out
    done = cli.json("erase", "orc-1", "--memory-id", secret, "--yes", *WHY)
    assert done["preview"] is None


def test_how_far_an_answer_reaches_is_told_whether_there_is_more_or_not(cli: CommandLine) -> None:
    told = cli.remember("The shop sells bread.")
    asked = [("impact", "orc-1", told), ("grounds", "orc-1", told)]
    asked += [("receipts", "orc-1"), ("bulletins", "orc-1")]
    before = [cli(*each).out for each in asked]
    assert all(each.splitlines()[-1] == REACH for each in before)
    cli.remember("The safe of the shop is red.", "--sensitivity", "Restricted")
    high = ("--clearance", "Restricted")
    assert len(cli.json("recall", "orc-1", "what does the shop sell?", *high)["items"]) == 2
    cli("bulletin", "orc-1", *high)
    assert [cli(*each).out for each in asked] == before
    assert len(cli.json("receipts", "orc-1", *high)["receipts"]) > 0


def test_a_memory_of_a_file_without_a_date_is_undated(cli: CommandLine) -> None:
    cli.remember("The bridge opens at noon.", "--event-time", "2026-01-05")
    said = cli.remember("The bridge opens at two.")
    notes = cli.root / "orc-1" / "memory" / "ingest" / "bridge.md"
    notes.write_text("# The bridge\n\nThe bridge opens at one.\n\nThe bridge opens at six.\n")
    cli("ingest", "orc-1")
    today = cli.json("get", "orc-1", said)["created_at"][: len("2026-01-05")]
    dates = {"noon": "2026-01-05", "two": today, "one": "undated", "six": "undated"}
    listed = cli("list", "orc-1").out.splitlines()
    recalled = cli("recall", "orc-1", "When does the bridge open?").out
    for hour, date in dates.items():
        [line] = (line for line in listed if f"opens at {hour}" in line)
        assert f" {date} " in line
        [line] = (line for line in recalled.splitlines() if f"The bridge opens at {hour}." in line)
        assert date in line
