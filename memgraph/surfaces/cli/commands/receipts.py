"""Commands for receipts: receipt list, show, bulletins, bulletin."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memgraph.clock import iso
from memgraph.errors import NotFound
from memgraph.model.enums import Scope
from memgraph.surfaces.cli.builder import OrchestratorName, make_group, value
from memgraph.surfaces.cli.files import counted
from memgraph.surfaces.cli.formats import moment, short, summary_of
from memgraph.surfaces.cli.invocation import CommandResult, Invocation, invocation
from memgraph.surfaces.cli.screen import Screen

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
TOLD = (
    "purpose",
    "actor",
    "conversation_id",
    "workflow_run_id",
    "step_id",
    "query_sha256",
    "change_seq",
    "viewer",
    "left_out",
    "sha256",
    "same_as",
    "bulletin_id",
)
"""The fields of a receipt that are shown in addition to its request and its items."""
SHOWN = {
    "query_sha256": "query's sha256",
    "change_seq": "journal entry",
    "viewer": "could see",
    "left_out": "left out",
    "same_as": "same as",
    "bulletin_id": "bulletin",
}
TEXTS_SHOWN = 50
"""The number of items whose text is shown; each needs a request."""
ITEM_COLUMNS = ("rank", "id", "text", "score", "legs", "modifiers")
# Other fields of an item become further columns under their own names.
_OF_ITEM = frozenset({"rank", "memory_id", "score", "legs", "modifiers"})


def list_receipts(
    context: typer.Context,
    orchestrator: OrchestratorName,
    task_id: Annotated[str | None, value("ID", "Only receipts for this task.", "--task")] = None,
    run_id: Annotated[str | None, value("ID", "Only for this workflow run.", "--run")] = None,
    conversation_id: Annotated[
        str | None, value("ID", "Only receipts for this conversation.", "--conversation")
    ] = None,
    purpose: Annotated[
        str | None, value("WORD", "Only this: recall, bulletin, build_context …", "--purpose")
    ] = None,
    limit: Annotated[int, typer.Option(help="1 to 1000.")] = 20,
    before: Annotated[str | None, value("ID", "Only older ones than this.", "--before")] = None,
) -> CommandResult:
    """List receipts whose memories you may all see, newest first.

    Receipts of a project or a session require --project or --session.
    """
    call = invocation(context)
    _open_task(call, task_id)
    with call.orchestrator(orchestrator) as handle:
        result = handle.receipts.list(
            task_id=task_id,
            workflow_run_id=run_id,
            conversation_id=conversation_id,
            purpose=purpose,
            limit=limit,
            before=before,
        )

    def show(screen: Screen) -> None:
        if result.receipts:
            screen.table(LIST_COLUMNS, [_row(receipt) for receipt in result.receipts])
        else:
            screen.line("no receipt")
        if result.cut:
            screen.line("there may be more: use --limit, --before or one of the filters")
        screen.line(call.reach, style="dim")

    return CommandResult(
        {"receipts": [_as_json(receipt) for receipt in result.receipts], "cut": result.cut}, show
    )


def show_receipt(
    context: typer.Context,
    orchestrator: OrchestratorName,
    receipt_id: Annotated[
        str, typer.Argument(metavar="ID", help="A receipt's id.", show_default=False)
    ],
    task_id: Annotated[str | None, value("ID", "The task that it was for.", "--task")] = None,
) -> CommandResult:
    """Show a receipt: when and to whom memories were returned, which ones, and why.

    A receipt with memories of a task or a project requires --task or --project.
    """
    call = invocation(context)
    _open_task(call, task_id)
    try:
        with call.orchestrator(orchestrator) as handle:
            result = handle.receipts.get(receipt_id)
            begins = {} if call.as_json else _beginnings(handle, result)
    except NotFound as error:
        # The message does not reveal whether the receipt exists.
        hint = (
            f"{error.message}; if it has memories of a task, project or session, name it with"
            " --task, --project or --session; for memories above Internal use --clearance"
        )
        raise NotFound(hint, **error.details) from None
    data = _as_json(result)
    return CommandResult(data, lambda screen: _show(screen, result, data, begins))


def list_bulletins(
    context: typer.Context,
    orchestrator: OrchestratorName,
    limit: Annotated[int, typer.Option(help="1 to 1000.")] = 20,
    before: Annotated[str | None, value("ID", "Only older ones than this.", "--before")] = None,
) -> CommandResult:
    """List the bulletins whose memories you may all see, newest first."""
    call = invocation(context)
    with call.orchestrator(orchestrator) as handle:
        result = handle.receipts.bulletins(limit=limit, before=before)

    def show(screen: Screen) -> None:
        if result.bulletins:
            rows = [
                (
                    bulletin.bulletin_id,
                    moment(bulletin.created_at),
                    str(bulletin.receipts),
                    bulletin.sha256[:16],
                )
                for bulletin in result.bulletins
            ]
            screen.table(("id", "first", "times", "sha256"), rows)
        else:
            screen.line("no bulletin was handed out")
        if result.cut:
            screen.line("there may be more: use --limit or --before")
        screen.line(call.reach, style="dim")

    return CommandResult(result.model_dump(mode="json"), show)


def show_bulletin(
    context: typer.Context,
    orchestrator: OrchestratorName,
    bulletin_id: Annotated[
        str, typer.Argument(metavar="ID", help="A bulletin's id.", show_default=False)
    ],
) -> CommandResult:
    """Print a bulletin exactly as it was delivered."""
    call = invocation(context)
    with call.orchestrator(orchestrator) as handle:
        result = handle.receipts.bulletin(bulletin_id)
    return CommandResult(
        result.model_dump(mode="json"), lambda screen: screen.raw_lines(result.body)
    )


def _open_task(call: Invocation, task_id: str | None) -> None:
    if task_id is not None:
        call.session.append(task_id)


def _as_json(receipt: Receipt) -> dict[str, Any]:
    items = [{"rank": rank, **asdict(value)} for rank, value in enumerate(receipt.items, start=1)]
    return {
        "receipt_id": receipt.receipt_id,
        "at": iso(receipt.at),
        "query": receipt.query,
        "asked": dict(receipt.asked),
        **{name: getattr(receipt, name) for name in TOLD},
        "answer": receipt.answer,
        "items": items,
    }


def _for_whom(receipt: Receipt) -> dict[str, Any]:
    """Return the conversation, run, step, task, project and agent, as far as known."""
    values = {name: getattr(receipt, name, receipt.asked.get(name)) for name in FOR_WHOM}
    return {FOR_WHOM[name]: value for name, value in values.items() if value is not None}


def _row(receipt: Receipt) -> tuple[str, ...]:
    recipients = [f"{label} {value}" for label, value in _for_whom(receipt).items()]
    return (
        receipt.receipt_id,
        moment(receipt.at),
        receipt.purpose or RECALL,
        ", ".join(recipients),
        str(len(receipt.items)),
        short(receipt.query or (receipt.query_sha256 or "")[:16]),
    )


def _beginnings(handle: Any, receipt: Receipt) -> dict[str, str]:
    """Return the first words of a receipt's first memories, by memory id."""
    memories = [handle.get(item.memory_id) for item in receipt.items[:TEXTS_SHOWN]]
    return {memory.memory_id: short(summary_of(memory)) or "[erased]" for memory in memories}


def _show(
    screen: Screen, receipt: Receipt, data: Mapping[str, Any], begins: Mapping[str, str]
) -> None:
    request = dict(receipt.asked)
    request.pop("purpose", None)
    purpose = receipt.purpose or RECALL
    screen.heading(f"{receipt.receipt_id}  {purpose}, {moment(receipt.at)}")
    bulletin = request.pop("bulletin", {})
    lists = {name: request.pop(name) for name in [*request] if _is_records(request[name])}
    labels = _for_whom(receipt)
    # In a recall the conversation is a filter, not a recipient.
    filtered = set() if purpose != RECALL else {"conversation_id"}
    others = {
        name.replace("_", " "): value
        for name, value in request.items()
        if name not in FOR_WHOM or name in filtered
    }
    details = {
        SHOWN.get(name, name): _IN_WORDS.get(name, _text)(getattr(receipt, name))
        for name in TOLD
        if name not in request and name not in FOR_WHOM and name != "purpose"
    }
    fields = {"query": receipt.query, **labels, **others, **details}
    screen.fields(
        [(name, _text(value)) for name, value in fields.items() if value not in (None, "")]
    )
    screen.line()
    if data["items"]:
        screen.table(*_items_table(data["items"], begins))
    else:
        screen.line("no memory of a context or a recall")
    if receipt.answer is not None:
        for name, text in (
            ("answer", receipt.answer["text"]),
            ("block", receipt.answer["block"]["text"]),
        ):
            screen.line()
            screen.heading(name)
            screen.block(text)
    for name, records in lists.items():
        screen.line()
        screen.heading(f"{name.replace('_', ' ')}: {len(records)}")
        screen.table(*_records_table(records))
    if bulletin:
        screen.line()
        ids = bulletin.get("memory_ids", ())
        count = counted(len(ids), "memory", "memories")
        screen.heading(f"bulletin {bulletin.get('change_seq', '')}: {count}")
        for memory_id in ids:
            screen.line(f"  {memory_id}")


def _items_table(
    items: Sequence[Mapping[str, Any]], begins: Mapping[str, str]
) -> tuple[Sequence[str], list[tuple[str, ...]]]:
    more = [name for name in _keys(items) if name not in _OF_ITEM]
    more = [name for name in more if any(item.get(name) for item in items)]
    rows = [
        (
            str(item["rank"]),
            item["memory_id"],
            begins.get(item["memory_id"], ""),
            f"{item['score']:.5f}",
            _pairs(item["legs"], "d"),
            _pairs({name: value for name, value in item["modifiers"].items() if value != 1}, ".3f"),
            *(_text(item.get(name)) for name in more),
        )
        for item in items
    ]
    return (*ITEM_COLUMNS, *more), rows


def _records_table(
    records: Sequence[Mapping[str, Any]],
) -> tuple[Sequence[str], list[tuple[str, ...]]]:
    names = _keys(records)
    rows = [tuple(_text(record.get(name)) for name in names) for record in records]
    return [name.replace("_", " ") for name in names], rows


def _keys(records: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for record in records for name in record))


def _is_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _pairs(numbers: Mapping[str, float], form: str) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value:{form}}" for name, value in numbers.items())


def _seen(viewer: Mapping[str, Any] | None) -> str:
    """Describe what the reader was allowed to see."""
    if viewer is None:
        return ""
    texts = [f"up to {viewer['clearance']}"]
    if len(viewer["scopes"]) < len(Scope):
        texts.append(f"{' and '.join(viewer['scopes'])} alone")
    for what, ids in (("project", viewer["project_ids"]), ("session", viewer["session_ids"])):
        texts += [f"{what} {memory_id}" for memory_id in ids]
    if viewer["agent_id"] is not None:
        texts.append(f"agent {viewer['agent_id']}" + ("" if viewer["shared"] else " alone"))
    return ", ".join(texts)


def _left_out(counts: Mapping[str, int] | None) -> str:
    """Describe how many memories were left out, by reason."""
    if counts is None:
        return ""
    lines = [f"{name.replace('_', ' ')} {count}" for name, count in counts.items() if count]
    return ", ".join(lines) or "nothing"


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False)


_IN_WORDS: Mapping[str, Callable[[Any], str]] = {"viewer": _seen, "left_out": _left_out}


COMMANDS: dict[str, Any] = {
    "receipt": make_group(
        "receipt",
        "Show which memories were returned, and why.",
        {
            "list": list_receipts,
            "show": show_receipt,
            "bulletins": list_bulletins,
            "bulletin": show_bulletin,
        },
    ),
}
