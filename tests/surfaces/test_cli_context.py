"""memgraph context: the block before a message, and why it holds what it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import CommandLine


def test_it_is_the_block_before_a_message(cli: CommandLine) -> None:
    oven = cli.remember("The oven is slow.")
    for number in range(9):
        cli.remember(f"Rule {number} of the bakery.")
    told = cli("context", "orc-1", "what about the oven", "--explain").out
    assert told.startswith("Between the two marks are records from memory.")
    assert "Fact: The oven is slow.\n" in told
    assert oven in told
    listed = cli("context", "orc-1", "oven", "--format", "list").out
    assert listed.startswith("[Relevant Memory]\n- The oven is slow.\n")
    data = cli.json("context", "orc-1", "rules of the bakery", "--budget-tokens", "150")
    assert data["token_cost"] <= 150
    assert data["left_out"] > 0
    assert list(data["memories"]) == [str(number + 1) for number in range(len(data["memories"]))]


def test_an_empty_context_says_why(cli: CommandLine) -> None:
    ran = cli("context", "orc-1", "oven")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith("empty[nothing_known]: ")
    assert cli.json("context", "orc-1", "oven")["empty"] == "nothing_known"
    cli.remember("The oven is slow.")
    assert cli.json("context", "orc-1", "oven")["empty"] is None
    for budget in ("0", "3"):
        ran = cli("context", "orc-1", "oven", "--budget-tokens", budget)
        assert (ran.code, ran.out) == (0, "")
        assert ran.err.startswith("empty[budget_too_small]: the budget is too small")
        told = cli.json("context", "orc-1", "oven", "--budget-tokens", budget)
        assert (told["empty"], told["memories"]) == ("budget_too_small", {})
