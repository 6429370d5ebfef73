"""What was handed out, for whom and why: receipt list, receipt show."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memgraph.clock import iso
from memgraph.errors import NotFound
from memgraph.surfaces.cli.building import OrchestratorName, make_group, value
from memgraph.surfaces.cli.commands.shaping import moment, short
from memgraph.surfaces.cli.invocation import Invocation, Report, invocation
from memgraph.surfaces.cli.screen import Screen
from memgraph.surfaces.cli.text import counted

if TYPE_CHECKING:
    from memgraph.model.receipts import Receipt

RECALL = "recall"
LIST_COLUMNS = ("id", "when", "what for", "for whom", "memories", "query")
FOR_WHOM = {
    "conversation_id": "conversation",
    "workflow_run_id": "run",
    "step_id": "step",
    "task_id": "task",
    "project_id": "project",
    "agent_id": "agent",
}
ITEM_COLUMNS = ("rank", "id", "score", "legs", "modifiers")
# What a receipt may say of an item beyond the columns is shown by its name.
_OF_ITEM = frozenset({"rank", "memory_id", "score", "legs", "modifiers"})


def list_receipts(
    context: typer.Context,
    orchestrator: OrchestratorName,
    task_id: Annotated[str | None, value("ID", "For this task.", "--task")] = None,
    run_id: Annotated[str | None, value("ID", "For this run of a workflow.", "--run")] = None,
    conversation_id: Annotated[
        str | None, value("ID", "For this conversation.", "--conversation")
    ] = None,
    limit: Annotated[int, typer.Option(help="1 to 1000.")] = 20,
) -> Report:
    """List receipts, newest first: those of which you may see every memory.

    One of a project or a session takes --project or --session.
    """
    given = invocation(context)
    _open_task(given, task_id)
    with given.orchestrator(orchestrator) as handle:
        found = handle.receipts(
            task_id=task_id,
            workflow_run_id=run_id,
            conversation_id=conversation_id,
            limit=limit,
        )

    def show(screen: Screen) -> None:
        if found.receipts:
            screen.table(LIST_COLUMNS, [_row(each) for each in found.receipts])
        else:
            screen.line("no receipt")
        if found.cut:
            screen.line("there may be more: --limit, or say for whom")

    return Report({"receipts": [_as_json(each) for each in found.receipts], "cut": found.cut}, show)


def show_receipt(
    context: typer.Context,
    orchestrator: OrchestratorName,
    receipt_id: Annotated[
        str, typer.Argument(metavar="ID", help="A receipt's id.", show_default=False)
    ],
    task_id: Annotated[str | None, value("ID", "The task that it was for.", "--task")] = None,
) -> Report:
    """Show what was handed out: when, for whom, which memories, and why these.

    One with a task's or a project's memories takes --task or --project.
    """
    given = invocation(context)
    _open_task(given, task_id)
    try:
        with given.orchestrator(orchestrator) as handle:
            found = handle.receipt(receipt_id)
    except NotFound as error:
        # The same whether there is one or not.
        hint = f"{error.message}: name them with --task, --project or --session"
        raise NotFound(hint, **error.details) from None
    data = _as_json(found)
    return Report(data, lambda screen: _show(screen, found, data))


def _open_task(given: Invocation, task_id: str | None) -> None:
    if task_id is not None:
        given.session.append(task_id)


def _as_json(receipt: Receipt) -> dict[str, Any]:
    items = [{"rank": rank, **asdict(each)} for rank, each in enumerate(receipt.items, start=1)]
    return {
        "receipt_id": receipt.receipt_id,
        "at": iso(receipt.at),
        "query": receipt.query,
        "asked": dict(receipt.asked),
        "items": items,
    }


def _row(receipt: Receipt) -> tuple[str, ...]:
    asked = receipt.asked
    whom = [f"{shown} {asked[name]}" for name, shown in FOR_WHOM.items() if name in asked]
    return (
        receipt.receipt_id,
        moment(receipt.at),
        str(asked.get("purpose", RECALL)),
        ", ".join(whom),
        str(len(receipt.items)),
        short(receipt.query),
    )


def _show(screen: Screen, receipt: Receipt, data: Mapping[str, Any]) -> None:
    asked = dict(receipt.asked)
    screen.heading(f"{receipt.receipt_id}  {asked.pop('purpose', RECALL)}, {moment(receipt.at)}")
    bulletin = asked.pop("bulletin", {})
    lists = {name: asked.pop(name) for name in [*asked] if _is_records(asked[name])}
    named = {FOR_WHOM[name]: asked.pop(name) for name in FOR_WHOM if name in asked}
    others = {name.replace("_", " "): one for name, one in asked.items()}
    said = {"query": receipt.query, **named, **others}
    screen.fields([(name, _text(one)) for name, one in said.items() if one not in (None, "")])
    screen.line()
    if data["items"]:
        screen.table(*_items_table(data["items"]))
    else:
        screen.line("no memory of a context or a recall")
    for name, records in lists.items():
        screen.line()
        screen.heading(f"{name.replace('_', ' ')}: {len(records)}")
        screen.table(*_records_table(records))
    if bulletin:
        screen.line()
        ids = bulletin.get("memory_ids", ())
        many = counted(len(ids), "memory", "memories")
        screen.heading(f"bulletin {bulletin.get('change_seq', '')}: {many}")
        for each in ids:
            screen.line(f"  {each}")


def _items_table(
    items: Sequence[Mapping[str, Any]],
) -> tuple[Sequence[str], list[tuple[str, ...]]]:
    more = [name for name in _keys(items) if name not in _OF_ITEM]
    rows = [
        (
            str(each["rank"]),
            each["memory_id"],
            f"{each['score']:.5f}",
            _pairs(each["legs"], "d"),
            _pairs(each["modifiers"], ".3f"),
            *(_text(each.get(name)) for name in more),
        )
        for each in items
    ]
    return (*ITEM_COLUMNS, *more), rows


def _records_table(
    records: Sequence[Mapping[str, Any]],
) -> tuple[Sequence[str], list[tuple[str, ...]]]:
    names = _keys(records)
    rows = [tuple(_text(each.get(name)) for name in names) for each in records]
    return [name.replace("_", " ") for name in names], rows


def _keys(records: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for each in records for name in each))


def _is_records(one: Any) -> bool:
    return isinstance(one, list) and bool(one) and all(isinstance(each, dict) for each in one)


def _pairs(given: Mapping[str, float], form: str) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {one:{form}}" for name, one in given.items())


def _text(one: Any) -> str:
    if one is None or isinstance(one, str):
        return one or ""
    if isinstance(one, list | tuple) and all(isinstance(each, str) for each in one):
        return ", ".join(one)
    return json.dumps(one, ensure_ascii=False)


COMMANDS = {
    "receipt": make_group(
        "receipt",
        "Show what was handed out, and why.",
        {"list": list_receipts, "show": show_receipt},
    )
}
