"""Commands for conversations and prompts: say, sessions, context, promote."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from memgraph.errors import ConfirmationMissing, InvalidInput, NotFound
from memgraph.model.enums import Sensitivity
from memgraph.surfaces.cli.builder import OrchestratorName, choice, make_command, value
from memgraph.surfaces.cli.files import counted
from memgraph.surfaces.cli.formats import NO_AGENT, as_json
from memgraph.surfaces.cli.invocation import CommandResult, InvalidContent, Invocation, invocation
from memgraph.surfaces.cli.operations import read_stdin
from memgraph.surfaces.cli.render import show_table
from memgraph.surfaces.cli.screen import Screen, note

if TYPE_CHECKING:
    from memgraph.model.context import (
        ContextBlock,
        ContextPackage,
        ContextRequest,
        OmittedMemory,
        Task,
    )
    from memgraph.operations.orchestrator import Orchestrator

# A memory with all its fields is never longer.
MAX_LINE_CHARS = 1_000_000


def say(
    context: typer.Context,
    orchestrator: OrchestratorName,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="What was said.", show_default=False)
    ] = None,
    session_id: Annotated[
        str | None, value("ID", "The conversation. [the value of --session, if only one]")
    ] = None,
    role: Annotated[str | None, value("NAME", "The speaker. [user]")] = None,
    turn_id: Annotated[str | None, value("ID", "The turn's id in the session.")] = None,
    event_time: Annotated[str | None, value("TIME", "When it was said, ISO 8601.")] = None,
    sensitivity: Annotated[Sensitivity | None, choice(Sensitivity)] = None,
    file: Annotated[
        str | None,
        value("FILE", "Many turns, one JSON object with content per line; - is standard input."),
    ] = None,
) -> CommandResult:
    """Store one or more turns of a conversation.

    The first turn of a new session completes all open ones. If an object in --file lacks one of the
    fields session_id, source_role, turn_id, event_time and sensitivity, the option applies.
    """
    if (text is None) == (file is None):
        raise typer.BadParameter("give either TEXT or --file")
    call = invocation(context)
    fields = {
        "session_id": session_id or _only_session(call),
        "source_role": role or "user",
        "turn_id": turn_id,
        "event_time": event_time,
        "sensitivity": sensitivity,
    }
    common = {name: field for name, field in fields.items() if field is not None}
    if text is not None:
        return _store_turn(call, orchestrator, {**common, "content": text})
    return _store_turns(call, orchestrator, str(file), common)


def sessions(
    context: typer.Context,
    orchestrator: OrchestratorName,
    pending: Annotated[
        bool, typer.Option("--pending", help="Only sessions that wait for consolidation.")
    ] = False,
    before: Annotated[
        str | None, value("ID", "Continue after the last id of the previous page.")
    ] = None,
    limit: Annotated[int, typer.Option(help="1 to 1000.")] = 50,
) -> CommandResult:
    """List conversations, latest activity first, with their number of unconsolidated turns."""
    with invocation(context).orchestrator(orchestrator) as handle:
        results = handle.sessions.list(pending=pending or None, before=before, limit=limit)
    following = results[-1].session_id if len(results) == limit else None

    def show(screen: Screen) -> None:
        if results:
            show_table(screen, results)
        else:
            screen.line("no conversations")
        if following is not None:
            screen.line(f"more: --before {following}")

    return CommandResult(
        {"sessions": [as_json(item) for item in results], "next_before": following}, show
    )


def _store_turn(call: Invocation, orchestrator: str, fields: dict[str, Any]) -> CommandResult:
    from memgraph.model.values import EpisodeInput, validated

    turn = validated(EpisodeInput, fields)
    with call.orchestrator(orchestrator) as handle:
        memory_id = handle.save_episode(**dict(turn))
        embedding = call.after_writing(handle)
    data = {"memory_id": memory_id, "session_id": turn.session_id, "embedding": embedding}
    return CommandResult(data, lambda screen: screen.line(f"stored {memory_id}"))


def _store_turns(
    call: Invocation, orchestrator: str, file: str, common: dict[str, Any]
) -> CommandResult:
    invalid: list[dict[str, Any]] = []
    lines: list[int] = []
    with call.orchestrator(orchestrator) as handle, _open_turns(file) as source:
        outcomes = handle.save_episodes(_turns(source, common, lines, invalid))
        embedding = call.after_writing(handle)
    stored = [
        {"line": line, **outcome.model_dump(exclude={"edge_id"})}
        for line, outcome in zip(lines, outcomes, strict=True)
    ]
    entries = sorted([*stored, *invalid], key=lambda entry: int(entry["line"]))
    rejected = [item for item in entries if item["outcome"] == "rejected"]
    data = {"outcomes": entries, "rejected": len(rejected), "embedding": embedding}
    error = None
    if rejected:
        error = InvalidInput(f"{len(rejected)} of {len(entries)} lines were rejected")

    def show(screen: Screen) -> None:
        screen.line(f"stored {counted(len(entries) - len(rejected), 'turn')}")
        for item in rejected:
            screen.line(f"line {item['line']}: rejected, {item['message']}")

    return CommandResult(data, show, error)


def _turns(
    source: IO[str], common: dict[str, Any], lines: list[int], refused: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield the turns of a file; add line numbers to ``lines`` and invalid lines to ``refused``."""
    number = 0
    while line := source.readline(MAX_LINE_CHARS + 1):
        number += 1
        if len(line) > MAX_LINE_CHARS:
            raise InvalidContent(f"line {number} is longer than {MAX_LINE_CHARS:,} characters")
        if not line.strip():
            continue
        try:
            result = json.loads(line)
        except (ValueError, RecursionError):
            result = None
        if isinstance(result, dict):
            lines.append(number)
            yield {**common, **result}
        else:
            outcome = {"outcome": "rejected", "memory_id": None, "code": InvalidInput.code}
            refused.append({"line": number, **outcome, "message": "not a JSON object"})


@contextmanager
def _open_turns(file: str) -> Iterator[IO[str]]:
    try:
        if file == "-":
            yield sys.stdin
            return
        with Path(file).open(encoding="utf-8") as stream:
            yield stream
    except UnicodeDecodeError:
        raise InvalidContent("the turns are not UTF-8") from None


def _only_session(call: Invocation) -> str | None:
    return call.session[0] if len(call.session) == 1 else None


class BlockFormatOption(StrEnum):
    """The values of ``BlockFormat``, which is not imported just for a help text."""

    FENCED = "fenced"
    LIST = "list"
    SECTIONS = "sections"


class EmptyReason(StrEnum):
    """The reasons why a context is empty."""

    NOTHING_KNOWN = "nothing_known"
    BUDGET = "budget_too_small"


def context(
    context: typer.Context,
    orchestrator: OrchestratorName,
    message: Annotated[
        str,
        typer.Argument(
            metavar="MESSAGE",
            help="The message; - reads standard input. [the most important memories]",
            show_default=False,
        ),
    ] = "",
    task_id: Annotated[str | None, value("ID", "The current task.", "--task")] = None,
    agent_id: Annotated[
        str | None, value("ID", "The prompt's agent; other agents' own memories stay out.")
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(help="Maximum tokens. [memory.context.block_tokens or budget_tokens]"),
    ] = None,
    model: Annotated[
        str | None, value("NAME", "The model whose tokenizer counts, litellm's name. [estimate]")
    ] = None,
    format_: Annotated[
        BlockFormatOption | None, choice(BlockFormatOption, "--format", text="The output format.")
    ] = None,
    max_items: Annotated[int, typer.Option(help="With --task: maximum memories, 1 to 1000.")] = 100,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show which memories these are, and why.")
    ] = False,
) -> CommandResult:
    """Print the block of memories to put before a message, within a token budget.

    --task ID adds the items of a task, and --project ID those of its project.
    """
    from memgraph.model.context import AgentProfile, ContextRequest
    from memgraph.model.values import validated
    from memgraph.operations.context.assembler import ContextAssembler

    text = read_stdin() if message == "-" else message
    request = validated(
        ContextRequest,
        {
            "query": text,
            "budget_tokens": budget,
            "model": model,
            "format": format_,
            "max_items": max_items,
        },
    )
    call = invocation(context)
    task = _task(call, task_id)
    if task is None:
        reader = agent_id or call.actor or NO_AGENT
        with call.orchestrator(orchestrator) as handle:
            block = handle.context(
                text, budget_tokens=budget, format=format_, agent_id=reader, model=model
            )
        return _block_result(block, explain)
    if call.server_url is not None:
        return _package_result(
            _build_remotely(call, orchestrator, task, request, agent_id), explain
        )
    actor = call.actor or "orchestrator"
    profile = validated(AgentProfile, {"name": actor, "agent_id": agent_id})
    with call.service() as service:
        assembler = ContextAssembler(
            service,
            orchestrator,
            clearance=call.viewer.clearance,
            profile=profile,
            actor=actor,
        )
        # A person can wait for the tokenizer to load; an agent's turn would not.
        assembler.load_tokenizer(model)
        package = assembler.build_context(task, request)
    return _package_result(package, explain)


def _block_result(block: ContextBlock, explain: bool) -> CommandResult:
    empty = None
    if not block.memories:
        empty = EmptyReason.BUDGET if block.left_out else EmptyReason.NOTHING_KNOWN

    def show(screen: Screen) -> None:
        screen.raw_lines(block.text)
        if explain:
            if block.memories:
                show_table(screen, list(block.memories.values()))
            screen.line(
                f"receipt {block.receipt_id}, {block.token_cost} tokens by {block.counter},"
                f" {block.left_out} left out"
            )
        if empty is EmptyReason.BUDGET:
            note(f"empty[{empty.value}]: the budget is too small for any of {block.left_out}")
        elif empty is not None:
            note(f"empty[{empty.value}]: no visible memory relates to this")
        for degradation in block.degraded:
            note(f"degraded[{degradation.code}]: {degradation.text}")

    return CommandResult({**as_json(block), "empty": empty}, show)


def _build_remotely(
    call: Invocation,
    orchestrator: str,
    task: Task,
    request: ContextRequest,
    agent_id: str | None,
) -> ContextPackage:
    call.agent = agent_id
    call.session.append(task.task_id)
    with call.orchestrator(orchestrator) as handle:
        return handle.contexts.build(task, request)


def _package_result(package: ContextPackage, explain: bool) -> CommandResult:
    empty = _why_empty(package)

    def show(screen: Screen) -> None:
        screen.raw_lines(package.text)
        if explain:
            _explain(screen, package)
        if empty is not None:
            note(f"empty[{empty.value}]: {_empty_message(empty, package)}")
        for degradation in package.degraded:
            note(f"degraded[{degradation.code}]: {degradation.text}")

    return CommandResult({**as_json(package), "empty": empty}, show)


def _task(call: Invocation, task_id: str | None) -> Task | None:
    """Return the task with its project. Raise BadParameter if several projects are named, or one
    without a task.
    """
    from memgraph.model.context import Task
    from memgraph.model.values import validated

    if len(call.project) > (task_id is not None):
        raise typer.BadParameter("name one --project at most, and only with --task")
    if task_id is None:
        return None
    project_id = call.project[0] if call.project else None
    return validated(Task, {"task_id": task_id, "project_id": project_id})


def _why_empty(package: ContextPackage) -> EmptyReason | None:
    if package.items:
        return None
    return EmptyReason.BUDGET if _lacking_room(package) else EmptyReason.NOTHING_KNOWN


def _lacking_room(package: ContextPackage) -> list[OmittedMemory]:
    """Return the memories omitted for lack of room, without those that repeat the message."""
    return [item for item in package.left_out if item.reason != "query"]


def _empty_message(empty: EmptyReason, package: ContextPackage) -> str:
    if empty is EmptyReason.NOTHING_KNOWN:
        return "no visible memory relates to this"
    minimum = min(item.token_cost for item in _lacking_room(package))
    return (
        f"a budget of {package.budget_tokens} tokens is too small for any memory: the smallest of"
        f" {package.left_out_count} candidates takes {minimum}, in addition to the markup of the"
        " block"
    )


def _explain(screen: Screen, package: ContextPackage) -> None:
    screen.heading("tiers")
    screen.table(
        ("tier", "share", "spent", "offered", "chosen"),
        [
            (tier.tier, *map(str, (use.share_tokens, use.spent, use.offered, use.chosen)))
            for tier, use in package.tiers.items()
        ],
    )
    for title, rows in (("items", package.items), ("left out", package.left_out)):
        if rows:
            screen.line()
            screen.heading(title)
            show_table(screen, rows)
    screen.line(
        f"receipt {package.receipt_id}, {package.token_cost} of {package.budget_tokens} tokens"
        f" by {package.counter}, {package.left_out_count} left out"
    )


class PromotionTier(StrEnum):
    """The targets of a promotion."""

    PROJECT = "project"
    GLOBAL = "global"


def promote(
    context: typer.Context,
    orchestrator: OrchestratorName,
    memory_id: Annotated[
        str, typer.Argument(metavar="ID", help="A memory's id.", show_default=False)
    ],
    to: Annotated[PromotionTier, choice(PromotionTier, "--to", text="The next higher tier.")],
    task_id: Annotated[str | None, value("ID", "The memory's task.", "--task")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Confirm without being asked.")] = False,
    reason: Annotated[str, value("TEXT", "Why, for the journal.")] = "",
) -> CommandResult:
    """Promote a task's memory to its project, or a project's to global.

    `memgraph tier` lists the ids. Name the memory's place with --task or --project; with --to
    project, --project is the target. Promoting a preference or an identity to global requires
    --yes.
    """
    call = invocation(context)
    target = None
    if to is PromotionTier.PROJECT:
        if len(call.project) != 1:
            raise typer.BadParameter("--to project requires one --project ID: the target")
        target = call.project[0]
    if task_id is not None:
        call.session.append(task_id)
    with call.orchestrator(orchestrator) as handle:
        new_id = _promote(handle, memory_id, to, target, yes=yes, reason=reason)
        embedding = call.after_writing(handle)
    data = {"memory_id": new_id, "promoted": memory_id, "to": to.value, "embedding": embedding}
    return CommandResult(
        data, lambda screen: screen.line(f"promoted {memory_id} to {to.value}: {new_id}")
    )


def _promote(
    handle: Orchestrator,
    memory_id: str,
    to: PromotionTier,
    target: str | None,
    *,
    yes: bool,
    reason: str,
) -> str | None:
    questions: list[str] = []

    def consent(question: str) -> bool:
        questions.append(question)
        if not yes:
            raise ConfirmationMissing("not confirmed")
        return True

    try:
        return handle.contexts.promote(
            memory_id, to.value, target, confirmation_callback=consent, reason=reason
        )
    except ConfirmationMissing:
        raise ConfirmationMissing(
            f"{questions[0]} If so, use --yes.", memory_id=memory_id
        ) from None
    except NotFound as error:
        # The message does not reveal whether the memory exists.
        hint = f"{error.message}; name its task or project with --task or --project"
        raise NotFound(hint, **error.details) from None


COMMANDS: dict[str, Any] = {
    "say": make_command(say, "say"),
    "sessions": make_command(sessions, "sessions"),
    "context": make_command(context, "context"),
    "promote": make_command(promote, "promote"),
}
