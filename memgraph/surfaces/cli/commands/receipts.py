"""Receipts of what was handed out: receipt list, show, replay, bulletins, bulletin."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memgraph.clock import iso
from memgraph.errors import InvalidInput, NotFound
from memgraph.model.enums import Scope
from memgraph.surfaces.cli.builder import OrchestratorName, make_group, value
from memgraph.surfaces.cli.formats import moment, short, summary_of
from memgraph.surfaces.cli.invocation import CommandResult, Invocation, invocation
from memgraph.surfaces.cli.screen import Screen
from memgraph.surfaces.cli.text import counted

if TYPE_CHECKING:
    from memgraph.model.receipts import Receipt, Replay

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
    "settings_sha256",
    "left_out",
    "sha256",
    "same_as",
    "bulletin_id",
)
"""The fields of a receipt that are shown beside its request and its items."""
SHOWN = {
    "query_sha256": "query's sha256",
    "change_seq": "journal entry",
    "settings_sha256": "settings' sha256",
    "viewer": "could see",
    "left_out": "left out",
    "same_as": "same as",
    "bulletin_id": "bulletin",
}
TEXTS_SHOWN = 50
"""The number of items whose text is shown; each needs a request."""
ITEM_COLUMNS = ("rank", "id", "text", "score", "legs", "modifiers")
# What a receipt may say of an item beyond the columns is shown by its name; what a replay needs to
# know of its accesses is told by --json alone.
_OF_ITEM = frozenset(
    {"rank", "memory_id", "score", "legs", "modifiers", "access_count", "last_accessed_at"}
)


def list_receipts(
    context: typer.Context,
    orchestrator: OrchestratorName,
    task_id: Annotated[str | None, value("ID", "For this task.", "--task")] = None,
    run_id: Annotated[str | None, value("ID", "For this run of a workflow.", "--run")] = None,
    conversation_id: Annotated[
        str | None, value("ID", "For this conversation.", "--conversation")
    ] = None,
    purpose: Annotated[
        str | None, value("WORD", "For this: recall, bulletin, build_context …", "--purpose")
    ] = None,
    limit: Annotated[int, typer.Option(help="1 to 1000.")] = 20,
    before: Annotated[str | None, value("ID", "Only older ones than this.", "--before")] = None,
) -> CommandResult:
    """List receipts, newest first, of which you may see every memory.

    One of a project or a session requires --project or --session.
    """
    given = invocation(context)
    _open_task(given, task_id)
    with given.orchestrator(orchestrator) as handle:
        found = handle.receipts.list(
            task_id=task_id,
            workflow_run_id=run_id,
            conversation_id=conversation_id,
            purpose=purpose,
            limit=limit,
            before=before,
        )

    def show(screen: Screen) -> None:
        if found.receipts:
            screen.table(LIST_COLUMNS, [_row(each) for each in found.receipts])
        else:
            screen.line("no receipt")
        if found.cut:
            screen.line("there may be more: --limit, --before, or say for whom")
        screen.line(given.reach, style="dim")

    return CommandResult(
        {"receipts": [_as_json(each) for each in found.receipts], "cut": found.cut}, show
    )


def show_receipt(
    context: typer.Context,
    orchestrator: OrchestratorName,
    receipt_id: Annotated[
        str, typer.Argument(metavar="ID", help="A receipt's id.", show_default=False)
    ],
    task_id: Annotated[str | None, value("ID", "The task that it was for.", "--task")] = None,
) -> CommandResult:
    """Show what was handed out: when, to whom, which memories, and why these.

    One with a task's or a project's memories requires --task or --project.
    """
    given = invocation(context)
    _open_task(given, task_id)
    try:
        with given.orchestrator(orchestrator) as handle:
            found = handle.receipts.get(receipt_id)
            begins = {} if given.as_json else _beginnings(handle, found)
    except NotFound as error:
        # The same whether there is one or not.
        hint = (
            f"{error.message}: name them with --task, --project or --session; of what is more than"
            " Internal with --clearance"
        )
        raise NotFound(hint, **error.details) from None
    data = _as_json(found)
    return CommandResult(data, lambda screen: _show(screen, found, data, begins))


def replay_receipt(
    context: typer.Context,
    orchestrator: OrchestratorName,
    receipt_id: Annotated[
        str, typer.Argument(metavar="ID", help="A receipt's id.", show_default=False)
    ],
    query: Annotated[
        str | None, value("TEXT", "What was asked, where its digest alone is kept.", "--query")
    ] = None,
    task_id: Annotated[str | None, value("ID", "The task that it was for.", "--task")] = None,
) -> CommandResult:
    """Repeat a request as of its moment, and show the differences with their reasons."""
    given = invocation(context)
    _open_task(given, task_id)
    with given.orchestrator(orchestrator) as handle:
        try:
            found = handle.receipts.replay(receipt_id, query=query)
        except InvalidInput as error:
            # The library names its argument; here it is an option.
            told = error.message.replace("query=", "--query")
            raise InvalidInput(told, **error.details) from None
    return CommandResult(found.model_dump(mode="json"), lambda screen: _show_replay(screen, found))


def list_bulletins(
    context: typer.Context,
    orchestrator: OrchestratorName,
    limit: Annotated[int, typer.Option(help="1 to 1000.")] = 20,
    before: Annotated[str | None, value("ID", "Only older ones than this.", "--before")] = None,
) -> CommandResult:
    """List bulletins that were handed out, newest first, that cite only what you may see."""
    given = invocation(context)
    with given.orchestrator(orchestrator) as handle:
        found = handle.receipts.bulletins(limit=limit, before=before)

    def show(screen: Screen) -> None:
        if found.bulletins:
            rows = [
                (each.bulletin_id, moment(each.created_at), str(each.receipts), each.sha256[:16])
                for each in found.bulletins
            ]
            screen.table(("id", "first", "times", "sha256"), rows)
        else:
            screen.line("no bulletin was handed out")
        if found.cut:
            screen.line("there may be more: --limit, --before")
        screen.line(given.reach, style="dim")

    return CommandResult(found.model_dump(mode="json"), show)


def show_bulletin(
    context: typer.Context,
    orchestrator: OrchestratorName,
    bulletin_id: Annotated[
        str, typer.Argument(metavar="ID", help="A bulletin's id.", show_default=False)
    ],
) -> CommandResult:
    """Print a bulletin as it was handed out."""
    given = invocation(context)
    with given.orchestrator(orchestrator) as handle:
        found = handle.receipts.bulletin(bulletin_id)
    return CommandResult(found.model_dump(mode="json"), lambda screen: screen.raw_lines(found.body))


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
        **{name: getattr(receipt, name) for name in TOLD},
        "items": items,
    }


def _for_whom(receipt: Receipt) -> dict[str, Any]:
    """Return the conversation, run, step, task, project and agent, as far as known."""
    said = {name: getattr(receipt, name, receipt.asked.get(name)) for name in FOR_WHOM}
    return {FOR_WHOM[name]: one for name, one in said.items() if one is not None}


def _row(receipt: Receipt) -> tuple[str, ...]:
    whom = [f"{shown} {one}" for shown, one in _for_whom(receipt).items()]
    return (
        receipt.receipt_id,
        moment(receipt.at),
        receipt.purpose or RECALL,
        ", ".join(whom),
        str(len(receipt.items)),
        short(receipt.query or (receipt.query_sha256 or "")[:16]),
    )


def _beginnings(handle: Any, receipt: Receipt) -> dict[str, str]:
    """Return the beginnings of a receipt's first memories, by their ids."""
    memories = [handle.get(each.memory_id) for each in receipt.items[:TEXTS_SHOWN]]
    return {each.memory_id: short(summary_of(each)) or "[erased]" for each in memories}


def _show(
    screen: Screen, receipt: Receipt, data: Mapping[str, Any], begins: Mapping[str, str]
) -> None:
    asked = dict(receipt.asked)
    asked.pop("purpose", None)
    purpose = receipt.purpose or RECALL
    screen.heading(f"{receipt.receipt_id}  {purpose}, {moment(receipt.at)}")
    bulletin = asked.pop("bulletin", {})
    lists = {name: asked.pop(name) for name in [*asked] if _is_records(asked[name])}
    named = _for_whom(receipt)
    # Of a recall the conversation is a filter, see ``said_of``.
    filtered = set() if purpose != RECALL else {"conversation_id"}
    others = {
        name.replace("_", " "): one
        for name, one in asked.items()
        if name not in FOR_WHOM or name in filtered
    }
    told = {
        SHOWN.get(name, name): _IN_WORDS.get(name, _text)(getattr(receipt, name))
        for name in TOLD
        if name not in asked and name not in FOR_WHOM and name != "purpose"
    }
    said = {"query": receipt.query, **named, **others, **told}
    screen.fields([(name, _text(one)) for name, one in said.items() if one not in (None, "")])
    screen.line()
    if data["items"]:
        screen.table(*_items_table(data["items"], begins))
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


def _show_replay(screen: Screen, found: Replay) -> None:
    from memgraph.model.receipts import WHY

    said = "the same memories in the same order" if found.same else "another answer"
    screen.heading(f"{found.receipt_id}, as of {moment(found.at)}: {said}")
    if found.same_digest is not None:
        screen.line("the same bytes" if found.same_digest else "other bytes")
    if found.because:
        screen.line(f"because of: {'; '.join(WHY[one] for one in found.because)}")
    if not found.differences:
        return
    rows = [
        (
            each.memory_id,
            "-" if each.rank is None else str(each.rank),
            "-" if each.rank_now is None else str(each.rank_now),
            "; ".join(f"{note.seq} {note.action} by {note.actor}" for note in each.because),
        )
        for each in found.differences
    ]
    screen.table(("memory", "rank then", "rank now", "journal since"), rows)
    if found.cut:
        screen.line("not all entries of the journal since were looked at")


def _items_table(
    items: Sequence[Mapping[str, Any]], begins: Mapping[str, str]
) -> tuple[Sequence[str], list[tuple[str, ...]]]:
    more = [name for name in _keys(items) if name not in _OF_ITEM]
    more = [name for name in more if any(each.get(name) for each in items)]
    rows = [
        (
            str(each["rank"]),
            each["memory_id"],
            begins.get(each["memory_id"], ""),
            f"{each['score']:.5f}",
            _pairs(each["legs"], "d"),
            _pairs({name: one for name, one in each["modifiers"].items() if one != 1}, ".3f"),
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


def _seen(viewer: Mapping[str, Any] | None) -> str:
    """Return what the reader could see, in words."""
    if viewer is None:
        return ""
    said = [f"up to {viewer['clearance']}"]
    if len(viewer["scopes"]) < len(Scope):
        said.append(f"{' and '.join(viewer['scopes'])} alone")
    for what, ids in (("project", viewer["project_ids"]), ("session", viewer["session_ids"])):
        said += [f"{what} {one}" for one in ids]
    if viewer["agent_id"] is not None:
        said.append(f"agent {viewer['agent_id']}" + ("" if viewer["shared"] else " alone"))
    return ", ".join(said)


def _left_out(counts: Mapping[str, int] | None) -> str:
    """Return how many memories were left out, by reason, in words."""
    if counts is None:
        return ""
    told = [f"{name.replace('_', ' ')} {count}" for name, count in counts.items() if count]
    return ", ".join(told) or "nothing"


def _text(one: Any) -> str:
    if one is None or isinstance(one, str):
        return one or ""
    if isinstance(one, list | tuple) and all(isinstance(each, str) for each in one):
        return ", ".join(one)
    return json.dumps(one, ensure_ascii=False)


_IN_WORDS: Mapping[str, Callable[[Any], str]] = {"viewer": _seen, "left_out": _left_out}
COMMANDS = {
    "receipt": make_group(
        "receipt",
        "Show what was handed out, and why.",
        {
            "list": list_receipts,
            "show": show_receipt,
            "replay": replay_receipt,
            "bulletins": list_bulletins,
            "bulletin": show_bulletin,
        },
    )
}
