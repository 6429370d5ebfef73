"""memgraph receipts: what was handed out, for whom and why."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from memgraph import MemoryService
from memgraph.model.receipts import Receipt

if TYPE_CHECKING:
    from conftest import CommandLine

REACH = "Anything that you may not see is left out"


def keep(cli: CommandLine, receipt_id: str, asked: dict[str, Any]) -> None:
    with MemoryService(cli.root, background=False) as service, service.opened("orc-1") as opened:
        # Before what is handed out in the test, and not so old that it is removed.
        yesterday = service.clock.now_ms() - 86_400_000
        opened.receipts.add(Receipt(receipt_id, yesterday, "", asked, (), counts=False))
        opened.receipts.flush()


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


def test_a_turns_receipt_shows_its_bulletin_and_whatever_else_it_says(cli: CommandLine) -> None:
    told = cli.remember("The shop sells bread.")
    left = [{"memory_id": told, "reason": "over_budget", "token_cost": 9}]
    asked = {
        "purpose": "on_step",
        "conversation_id": "monday",
        "workflow_run_id": "run-4",
        "step_id": "plan",
        "bulletin": {"change_seq": 3, "memory_ids": [told]},
        "left_out": left,
    }
    keep(cli, "rcl_00", asked)
    assert cli.json("receipt", "orc-1", "rcl_00")["asked"] == asked
    lines = cli("receipt", "orc-1", "rcl_00").out.splitlines()
    rows = [" ".join(line.split()) for line in lines]
    for each in ("purpose on_step", "conversation id monday", "workflow run id run-4"):
        assert each in rows
    assert f"{told[-6:].lower()} over_budget 9" in rows


def test_a_recall_is_for_a_run(cli: CommandLine) -> None:
    cli.remember("The oven is slow.")
    whom = (
        "--for-conversation-id",
        "talk",
        "--for-workflow-run-id",
        "run-7",
        "--for-step-id",
        "s1",
    )
    receipt_id = cli.json("recall", "orc-1", "oven", *whom)["receipt_id"]
    [listed] = cli.json("receipts", "orc-1", "--workflow-run-id", "run-7")["receipts"]
    assert listed["receipt_id"] == receipt_id
    assert "conversation talk, run run-7, step s1" in cli("receipts", "orc-1").out
    shown = cli("receipt", "orc-1", receipt_id).out
    assert all(one in shown for one in ("talk", "run-7"))


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
