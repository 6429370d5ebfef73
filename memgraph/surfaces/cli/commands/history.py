"""Comparing times: what changed between two, and over the life of one memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import typer

from memgraph.operations.groups import HistoryOperations
from memgraph.surfaces.cli.builder import make_command
from memgraph.surfaces.cli.formats import moment, short
from memgraph.surfaces.cli.operations import command_of
from memgraph.surfaces.cli.screen import Branch, Screen

if TYPE_CHECKING:
    from memgraph.model.graph import Diff, History, MemoryEvent, PairEvent

_OF_MEMORIES = ("learnt", "replaced", "retracted", "restored")
_OF_PAIRS = ("contradicted", "resolved", "dismissed", "reopened")


def _show_diff(screen: Screen, diff: Diff, _: Mapping[str, Any]) -> None:
    root = Branch(f"after {moment(diff.since)} until {moment(diff.until)}", style="bold")
    for name in _OF_MEMORIES:
        _add(root, diff, name, map(_memory_line, getattr(diff, name)))
    for name in _OF_PAIRS:
        _add(root, diff, name, map(_pair_line, getattr(diff, name)))
    moved = (
        f"{memory.memory_id}  {memory.before:.2f} to {memory.after:.2f}: {short(memory.text)}"
        for memory in diff.confidence
    )
    _add(root, diff, "confidence", moved)
    root.add(f"turns said ({diff.counts['said']})", style="dim")
    screen.tree(root)
    if diff.cut:
        screen.line("there is more: --limit, or times that lie closer together")


def _add(root: Branch, diff: Diff, name: str, lines: Iterable[str]) -> None:
    count = diff.counts[name]
    branch = root.add(f"{name} ({count})", style="cyan" if count else "dim")
    for line in lines:
        branch.add(line)


def _memory_line(event: MemoryEvent) -> str:
    why = f" ({event.reason})" if event.reason else ""
    return f"{moment(event.at)}  {event.memory_id}  {event.actor}{why}: {short(event.text)}"


def _pair_line(event: PairEvent) -> str:
    by = event.actor or "unknown"
    for_whom = f" for {event.winner_id}" if event.winner_id else ""
    why = f" ({event.reason})" if event.reason else ""
    sides = f"{short(event.first_text)} / {short(event.second_text)}"
    return f"{moment(event.at)}  {event.edge_id}  {by}{for_whom}{why}: {sides}"


def _show_history(screen: Screen, history: History, _: Mapping[str, Any]) -> None:
    screen.table(
        ("since", "until", "status", "by", "reason"),
        [
            (
                moment(period.since),
                moment(period.until),
                period.status.value,
                period.actor,
                period.reason or "",
            )
            for period in history.periods
        ],
    )
    screen.line()
    screen.table(
        ("since", "until", "confidence", "importance", "decay", "valid until"),
        [
            (
                moment(value.since),
                moment(value.until),
                f"{value.confidence:.2f}",
                str(value.importance),
                f"{value.decay_rate:g}",
                moment(value.valid_until),
            )
            for value in history.values
        ],
    )


COMMANDS = {
    "diff": make_command(
        command_of(
            HistoryOperations.diff,
            _show_diff,
            options={
                "since": typer.Argument(metavar="T1", help="After this time, ISO 8601."),
                "until": typer.Argument(
                    metavar="[T2]", help="Up to this time, ISO 8601; or until now."
                ),
            },
            text="Show what was learnt, replaced, retracted, contradicted and decided between"
            " two times.",
        ),
        "diff",
    ),
    "history": make_command(
        command_of(
            HistoryOperations.get,
            _show_history,
            text="Show every status and every value that a memory had, with their times.",
        ),
        "history",
    ),
}
