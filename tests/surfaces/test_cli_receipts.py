"""memgraph receipts: what was handed out, for whom and why."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import CommandLine

REACH = "Anything that you may not see is left out"


def test_a_receipt_tells_when_for_whom_what_and_why(cli: CommandLine) -> None:
    told = cli.remember("The oven is slow.")
    asked = ("context", "orc-1", "which oven?", "--agent-id", "baker", "--budget-tokens", "300")
    receipt_id = cli.json(*asked)["receipt_id"]
    data = cli.json("receipt", "orc-1", receipt_id)
    assert (data["receipt_id"], data["query"]) == (receipt_id, "")
    assert data["query_sha256"] == sha256(b"which oven?").hexdigest()
    assert (data["asked"]["agent_id"], data["asked"]["budget_tokens"]) == ("baker", 300)
    assert [each["memory_id"] for each in data["items"]] == [told]
    assert data["items"][0]["legs"]
    shown = cli("receipt", "orc-1", receipt_id).out
    for each in (
        receipt_id,
        data["at"][:10],
        data["query_sha256"],
        "baker",
        "300",
        told[-6:].lower(),
    ):
        assert each in shown
    for leg, rank in data["items"][0]["legs"].items():
        assert f"{leg} {rank}" in shown


def test_how_far_an_answer_reaches_is_told_whether_there_is_more_or_not(cli: CommandLine) -> None:
    told = cli.remember("The shop sells bread.")
    asked = [
        ("impact", "orc-1", told),
        ("grounds", "orc-1", told),
        ("receipts", "orc-1"),
        ("bulletins", "orc-1"),
    ]
    before = [cli(*each).out for each in asked]
    assert all(each.splitlines()[-1] == REACH for each in before)
    cli.remember("The safe of the shop is red.", "--sensitivity", "Restricted")
    high = ("--clearance", "Restricted")
    assert len(cli.json("recall", "orc-1", "what does the shop sell?", *high)["items"]) == 2
    cli("bulletin", "orc-1", *high)
    assert [cli(*each).out for each in asked] == before
    assert len(cli.json("receipts", "orc-1", *high)["receipts"]) > 0
