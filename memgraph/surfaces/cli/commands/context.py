"""The context for a task, as it is put before a prompt: memgraph context."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from memgraph.surfaces.cli.builder import OrchestratorName, choice, make_command, value
from memgraph.surfaces.cli.formats import as_json, short
from memgraph.surfaces.cli.invocation import CommandResult, invocation
from memgraph.surfaces.cli.screen import Screen, note

if TYPE_CHECKING:
    from memgraph.model.context import ContextPackage, ContextRequest, OmittedMemory, Task
    from memgraph.surfaces.cli.invocation import Invocation

MAX_STDIN_CHARS = 2_000_001
TEXT_CHARS = 60


class BlockFormatOption(StrEnum):
    """The values of ``BlockFormat``, without importing it for a help text."""

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
            help="What it is for; - reads it from standard input. Without one the most important.",
            show_default=False,
        ),
    ] = "",
    task_id: Annotated[str | None, value("ID", "The task that is worked on.", "--task")] = None,
    agent_id: Annotated[
        str | None, value("ID", "Whose prompt it is; other agents' own memories stay out.")
    ] = None,
    budget: Annotated[
        int | None, typer.Option(help="Tokens it may cost. [memory.context.budget_tokens]")
    ] = None,
    model: Annotated[
        str | None, value("NAME", "Whose tokenizer counts, as litellm names it; else an estimate.")
    ] = None,
    format_: Annotated[
        BlockFormatOption | None, choice(BlockFormatOption, "--format", text="How it is written.")
    ] = None,
    max_items: Annotated[int, typer.Option(help="Memories at most, 1 to 1000.")] = 100,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show tiers, reasons, and what was left out.")
    ] = False,
) -> CommandResult:
    """Print what a task needs to know within a budget of tokens, ready for a prompt.

    --project ID is here the project of the task.
    """
    from memgraph.model.context import AgentProfile, ContextRequest
    from memgraph.model.values import validated
    from memgraph.operations.context.assembler import ContextAssembler

    request = validated(
        ContextRequest,
        {
            "query": sys.stdin.read(MAX_STDIN_CHARS) if message == "-" else message,
            "budget_tokens": budget,
            "model": model,
            "format": format_,
            "max_items": max_items,
        },
    )
    given = invocation(context)
    task = _task(given, task_id)
    if given.server_url is not None:
        return _package_result(
            _built_remotely(given, orchestrator, task, request, agent_id), explain
        )
    actor = given.actor or "orchestrator"
    profile = validated(AgentProfile, {"name": actor, "agent_id": agent_id})
    with given.service() as service:
        assembler = ContextAssembler(
            service,
            orchestrator,
            clearance=given.viewer.clearance,
            profile=profile,
            actor=actor,
        )
        # A person waits for the tokenizer; a turn would not.
        assembler.load_tokenizer(model)
        package = assembler.build_context(task, request)
    return _package_result(package, explain)


def _built_remotely(
    call: Invocation,
    orchestrator: str,
    task: Task | None,
    request: ContextRequest,
    agent_id: str | None,
) -> ContextPackage:
    call.agent = agent_id
    if task is not None:
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
    """Return the task with its project. Raises BadParameter: a project without a task, or
    several.
    """
    from memgraph.model.context import Task
    from memgraph.model.values import validated

    if len(call.project) > (task_id is not None):
        raise typer.BadParameter("one --project ID goes with --task ID: it is the task's")
    if task_id is None:
        return None
    project_id = call.project[0] if call.project else None
    return validated(Task, {"task_id": task_id, "project_id": project_id})


def _why_empty(package: ContextPackage) -> EmptyReason | None:
    if package.items:
        return None
    return EmptyReason.BUDGET if _lacking_room(package) else EmptyReason.NOTHING_KNOWN


def _lacking_room(package: ContextPackage) -> list[OmittedMemory]:
    """Return what was left out for lack of room, without repetitions of the message."""
    return [item for item in package.left_out if item.reason != "query"]


def _empty_message(empty: EmptyReason, package: ContextPackage) -> str:
    if empty is EmptyReason.NOTHING_KNOWN:
        return "no memory that it may hold relates to this"
    minimum = min(item.token_cost for item in _lacking_room(package))
    return (
        f"a budget of {package.budget_tokens} tokens is too small for one memory: of"
        f" {package.left_out_count} that were considered one takes {minimum} beside the marks of"
        " the block"
    )


def _explain(screen: Screen, package: ContextPackage) -> None:
    screen.heading("tiers")
    screen.table(
        ("tier", "share", "spent", "offered", "chosen"),
        [
            (tier.value, *map(str, (use.share_tokens, use.spent, use.offered, use.chosen)))
            for tier, use in package.tiers.items()
        ],
    )
    screen.line()
    screen.heading("items")
    screen.table(
        ("memory", "tier", "tokens", "why", "text"),
        [
            (
                item.memory_id,
                item.tier.value,
                str(item.token_cost),
                ", ".join([*item.reasons, *(["shortened"] if item.shortened else [])]),
                short(item.text, TEXT_CHARS),
            )
            for item in package.items
        ],
    )
    if package.left_out:
        screen.line()
        screen.heading(f"left out: {package.left_out_count}")
        screen.table(
            ("memory", "tier", "tokens", "why"),
            [
                (memory.memory_id, memory.tier.value, str(memory.token_cost), memory.reason)
                for memory in package.left_out
            ],
        )
    screen.line(
        f"receipt {package.receipt_id}, {package.token_cost} of {package.budget_tokens} tokens"
        f" by {package.counter}, compression {package.compression_ratio:.2f}"
    )


COMMANDS = {"context": make_command(context, "context")}
