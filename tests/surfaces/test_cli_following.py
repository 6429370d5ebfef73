"""Following memories and runs on the command line: what is not there is an error, not an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memgraph.clock import iso, parse_time
from memgraph.model.influence import SourceLine
from memgraph.surfaces.cli.render import LINE_CHARS, LINES

if TYPE_CHECKING:
    from conftest import CommandLine


def test_differences_are_told_until_now(cli: CommandLine) -> None:
    one = cli.remember("The oven is slow.")
    at = cli.json("trace", "orc-1", one)["memory"]["created_at"]
    before = iso(parse_time(at) - 1)
    for since in (before, "yesterday", "last week"):
        told = cli.json("diff", "orc-1", since)["learnt"]
        assert [each["memory_id"] for each in told] == [one], since
    assert "id       text" in cli("diff", "orc-1", "yesterday").out
    assert "yesterday" in cli.error("diff", "orc-1", "soon")["message"]


def _line(line: SourceLine) -> str:
    return LINES["SourceLine"](line, {})


def test_a_value_of_json_has_no_numbers_and_keeps_its_indentation() -> None:
    assert _line(SourceLine(number=None, text='    "about": "Cake"')) == '    "about": "Cake"'
    assert _line(SourceLine(number=7, text="  - tea")) == "7:   - tea"
    assert len(_line(SourceLine(number=None, text=" " * 500 + "tea " * 500))) <= LINE_CHARS


def test_no_error_tells_the_class_of_a_validators_error(cli: CommandLine) -> None:
    cli.remember("The oven is slow.")
    kind = ("sources", "orc-1", "--kind", "bogus")
    for asked in (kind, ("recall", "orc-1", " ")):
        told = cli.error(*asked)
        assert "Value error" not in str(told), told
    assert "query: is empty" in cli.error("recall", "orc-1", " ")["message"]


def test_what_was_handed_out_itself_is_told_apart_from_what_was_derived_from_it(
    cli: CommandLine,
) -> None:
    other = cli.remember("The Monday boat sails at eight.")
    # The later side of a contradiction is handed out first.
    ground = cli.remember("The ferry leaves at seven.")
    late = cli.remember("Luggage is taken aboard before boarding.", "--derived-from", ground)
    edge = cli.json("relate", "orc-1", other, "Contradicts", ground)["edge_id"]
    asked = ("recall", "orc-1", "--top-n", "1")
    own = cli.json(*asked, "ferry leaves at seven")
    further = cli.json(*asked, "luggage taken aboard before boarding")
    assert [[one["memory"]["memory_id"] for one in each["items"]] for each in (own, further)] == [
        [ground],
        [late],
    ]
    told = [line.strip() for line in cli("impact", "orc-1", ground).out.splitlines()]
    for label, receipt, memory in (
        ("own hand outs (1)", own["receipt_id"], ground),
        ("further hand outs (1)", further["receipt_id"], late),
    ):
        line = told[told.index(label) + 3]
        assert line.startswith(receipt)
        assert line.endswith(memory[-6:].lower())
    sides = cli.json("case", "orc-1", edge)["sides"]
    counts = {each["memory"]["memory_id"]: each["influence"]["recalls"] for each in sides}
    assert counts == {ground: 1, other: 0}
