"""memgraph context: the block of a task, and why it holds what it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memgraph.model.context import BlockFormat
from memgraph.surfaces.cli.commands.conversations import BlockFormatOption

if TYPE_CHECKING:
    from conftest import CommandLine


def test_the_formats_are_those_of_the_model() -> None:
    assert [each.value for each in BlockFormatOption] == [each.value for each in BlockFormat]


def test_the_block_is_printed_and_explained(cli: CommandLine) -> None:
    noted = cli.remember("The oven is slow.", "--scope", "session", "--scope-id", "t1")
    cli.remember("The oven of another task.", "--scope", "session", "--scope-id", "t2")
    plain = cli("context", "orc-1", "oven", "--task", "t1", "--format", "list")
    assert plain.out.startswith("[Relevant Memory]\n- The oven is slow.\n")
    assert "another task" not in plain.out
    told = cli("context", "orc-1", "oven", "--task", "t1", "--explain").out
    assert noted in told
    assert "head, tail, recall:1" in told
    assert "of 2000 tokens by estimate" in told


def test_a_budget_holds_and_what_was_left_out_is_told(cli: CommandLine) -> None:
    for number in range(9):
        cli.remember(f"Rule {number} of the bakery.")
    task = ("context", "orc-1", "--task", "t1", "--budget", "150")
    data = cli.json(*task, "--max-items", "20")
    assert data["token_cost"] <= 150
    assert data["left_out_count"] == len(data["left_out"]) > 0
    assert "left out" in cli(*task, "--explain").out


def test_without_a_task_it_is_the_block_before_a_message(cli: CommandLine) -> None:
    oven = cli.remember("The oven is slow.")
    for number in range(9):
        cli.remember(f"Rule {number} of the bakery.")
    told = cli("context", "orc-1", "what about the oven", "--explain").out
    assert told.startswith("Between the two marks are records from memory.")
    assert "Fact: The oven is slow.\n" in told
    assert oven in told
    data = cli.json("context", "orc-1", "rules of the bakery", "--budget", "150")
    assert data["token_cost"] <= 150
    assert data["left_out"] > 0
    assert list(data["memories"]) == [str(number + 1) for number in range(len(data["memories"]))]


def test_a_project_goes_with_a_task(cli: CommandLine) -> None:
    cli.remember("Bread is baked at four.", "--scope", "project", "--scope-id", "web")
    told = cli.json("context", "orc-1", "bread", "--task", "t1", "--project", "web")
    assert [each["tier"] for each in told["items"]] == ["project"]
    assert cli("context", "orc-1", "--project", "web").code == 2
    two = cli("context", "orc-1", "--task", "t1", "--project", "web", "--project", "shop")
    assert two.code == 2


def test_an_empty_context_says_why(cli: CommandLine) -> None:
    ran = cli("context", "orc-1", "oven")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith("empty[nothing_known]: ")
    assert cli.json("context", "orc-1", "oven")["empty"] == "nothing_known"
    cli.remember("The oven is slow.")
    assert cli.json("context", "orc-1", "oven")["empty"] is None
    for budget in ("0", "3"):
        ran = cli("context", "orc-1", "oven", "--budget", budget)
        assert (ran.code, ran.out) == (0, "")
        assert ran.err.startswith("empty[budget_too_small]: the budget is too small")
        told = cli.json("context", "orc-1", "oven", "--budget", budget)
        assert (told["empty"], told["memories"]) == ("budget_too_small", {})
