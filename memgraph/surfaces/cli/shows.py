"""Show results that are neither a table nor an outline: answers, blocks, contradictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from memgraph.clock import MachineZone
from memgraph.ids import short_id
from memgraph.model.context import Answer, BuiltBulletin, ContextBlock
from memgraph.model.enums import MarkKind, MemoryStatus
from memgraph.model.graph import Case, Contradiction, ContradictionPage
from memgraph.model.recall import Bundle, Degraded, Mark, RecallItem
from memgraph.model.values import Edge, Memory, Outcome, StoredSource
from memgraph.rules.lifecycle import contradiction_state
from memgraph.surfaces.cli.formats import (
    date_of,
    day,
    edge_line,
    event_period,
    reason_of,
    short,
    summary_of,
    with_short,
)
from memgraph.surfaces.cli.render import (
    COLUMNS,
    fields_of,
    show_detail,
    show_result,
    show_table,
    text_of,
)
from memgraph.surfaces.cli.screen import Screen, counted, note

if TYPE_CHECKING:
    from memgraph.audit.findings import VerifyReport

Call = Mapping[str, Any]
"""The arguments of a command by name, with ``orchestrator`` and what was added to its data."""
TEXT_CHARS: Final = 400
DECIDE: Final = (
    "to decide one, by its six characters: memgraph accept or dismiss a change, resolve or"
    " dismiss a contradiction; memgraph case shows the evidence"
)


def show(screen: Screen, result: Any, call: Call) -> None:
    """Print a result by its type; see ``render`` for all others."""
    special = SHOWS.get(type(result).__name__)
    if special is not None:
        special(screen, result, call)
        return
    if result and "sources" in call:
        _memories(screen, result, call["sources"])
        return
    memories: Mapping[str, Memory] = call.get("known", {})
    texts = {name: short(summary_of(item)) or "[erased]" for name, item in memories.items()}
    show_result(screen, result, texts)


def _memories(
    screen: Screen, memories: Sequence[Memory], sources: Mapping[str, StoredSource]
) -> None:
    dates = ("date", lambda memory: date_of(memory, sources.get(memory.source_id)))
    columns = [dates if column[0] == "date" else column for column in COLUMNS["Memory"]]
    show_table(screen, memories, columns=columns)


def _outcome(screen: Screen, outcome: Outcome, _: Call) -> None:
    screen.line(f"{outcome.outcome} {with_short(outcome.memory_id)}")
    for other, reason in outcome.reasons.items():
        screen.line(f"repeats {other}: {reason}")


def _bundle(screen: Screen, bundle: Bundle, call: Call) -> None:
    """Print memories as the lines of a prompt, best first; an open mark has its short id."""
    from memgraph.rules.lines import line_of, records

    if not bundle.items:
        is_too_small = "token_budget" in bundle.cut_reasons
        screen.line("the token budget is too small" if is_too_small else "no memory matches")
        _degraded(bundle.degraded)
        return
    places = {item.memory.memory_id: f"[{n}]" for n, item in enumerate(bundle.items, start=1)}
    lines = []
    for item in bundle.items:
        memory = item.memory
        text, handle = short(memory.content, TEXT_CHARS), short_id(memory.memory_id)
        line = line_of(memory, item.source, text, handle=handle)
        # The status is among the notes.
        lines.append(replace(line, notes=tuple(_notes(item, places)), ended=False))
    screen.block(records(lines, MachineZone()).rstrip())
    marks = {mark.edge_id for item in bundle.items for mark in item.marks}
    edges = [
        edge
        for edge in bundle.edges
        if edge.edge_id not in marks and {edge.from_id, edge.to_id} <= places.keys()
    ]
    if edges:
        screen.heading("edges")
        for edge in edges:
            screen.block(edge_line(edge, places), indent=2)
    if call["explain"]:
        screen.line()
        show_table(screen, bundle.items)
        screen.line(f"receipt {bundle.receipt_id}, about {bundle.token_cost} tokens")
    _degraded(bundle.degraded)


def _notes(item: RecallItem, places: Mapping[str, str]) -> Iterator[str]:
    def named(memory_id: str) -> str:
        return places.get(memory_id) or f"#{short_id(memory_id)}"

    if item.memory.status is not MemoryStatus.ACTIVE:
        yield item.memory.status.value
    for mark in item.marks:
        yield f"{mark.relation} {named(mark.memory_id)}{_odds(mark)}"
    if item.brought_by is not None:
        yield f"shown because of {named(item.brought_by)}"


def _odds(mark: Mark) -> str:
    """Return the probability of a mark and its short id; "" for what is in force."""
    if mark.kind in (MarkKind.REPLACES, MarkKind.REPLACED_BY):
        return ""
    odds = f"{mark.weight:.0%}, " if mark.weight < 1.0 else ""
    return f" ({odds}{short_id(mark.edge_id)})"


def _degraded(items: Sequence[Degraded]) -> None:
    for item in items:
        note(f"degraded[{item.code}]: {item.text}")


def _block(screen: Screen, block: ContextBlock, call: Call) -> None:
    screen.raw_lines(block.text)
    if call["explain"]:
        if block.memories:
            show_table(screen, list(block.memories.values()))
        screen.line(
            f"receipt {block.receipt_id}, {block.token_cost} tokens, {block.left_out} left out"
        )
    if call["empty"] == "budget_too_small":
        related = counted(block.left_out, "related memory", "related memories")
        note(f"empty[{call['empty']}]: the budget is too small for any of {related}")
    elif call["empty"] is not None:
        note(f"empty[{call['empty']}]: no visible memory relates to this")
    _degraded(block.degraded)


def _answer(screen: Screen, answer: Answer, _: Call) -> None:
    screen.block(answer.text)
    if answer.citations:
        screen.line()
    for line in dict.fromkeys(citation.line for citation in answer.citations):
        screen.block(line)
    _degraded(answer.degraded)


def _bulletin(screen: Screen, built: BuiltBulletin, _: Call) -> None:
    screen.raw_lines(built.bulletin.text)
    if built.warning is not None:
        note(f"warning[{built.warning}]: {built.cause}")


def _memory(screen: Screen, memory: Memory, call: Call) -> None:
    """Print a memory's whole content, all fields that have a value, and its open pairs."""
    screen.heading(f"{memory.memory_id}  {memory.type.value}, {memory.shown_status.value}")
    screen.block(memory.content or "[erased]", indent=2)
    shown = {"short_id": short_id(memory.memory_id), **fields_of(memory)}
    shown["event_time"] = event_period(memory) or shown["event_time"]
    texts = [
        (name, text_of(value)) for name, value in shown.items() if name not in _NOT_OF_MEMORIES
    ]
    screen.fields([(name.replace("_", " "), text) for name, text in texts if text])
    if call["pairs"]:
        screen.line()
        _show_pairs(screen, call["pairs"])


_NOT_OF_MEMORIES: Final = frozenset(
    (
        *("memory_id", "orchestrator_id", "type", "status", "content", "summary"),
        *("sequence", "item_id", "content_hash", "token_cost"),
    )
)
"""The fields of a memory that its title has, or that only programs need."""


def _contradictions(screen: Screen, page: ContradictionPage, call: Call) -> None:
    if page.items:
        _show_pairs(screen, page.items)
    elif call["resolved"]:
        screen.line("nothing found")
    else:
        screen.line("nothing to decide")
        screen.line("without a language model few changes between turns are marked", style="dim")


def _show_pairs(screen: Screen, pairs: Sequence[Contradiction]) -> None:
    for at, pair in enumerate(pairs):
        sides = pair.first, pair.second
        _show_pair(screen, pair.edge, sides, pair.sources, moot=pair.moot, first=2 * at + 1)
    if any(pair.state == "open" for pair in pairs):
        screen.line(DECIDE, style="dim")


def _case(screen: Screen, case: Case, _: Call) -> None:
    memories = [side.memory for side in case.sides]
    _show_pair(screen, case.edge, memories, [side.source for side in case.sides], moot=case.moot)
    show_detail(screen, case, {})
    if case.state == "open":
        screen.line(DECIDE, style="dim")


def _show_pair(
    screen: Screen,
    edge: Edge,
    sides: Sequence[Memory],
    sources: Sequence[StoredSource],
    *,
    moot: bool,
    first: int = 1,
) -> None:
    """Print a contradiction or a mark: its short id and relation, and both lines as in a prompt.

    Args:
        moot: it is open, but one side is no longer in force, or its decision was undone.
        first: the number of the first line.
    """
    from memgraph.rules.lines import in_time, line_of, records

    lines = in_time(
        line_of(memory, source, handle=short_id(memory.memory_id))
        for memory, source in zip(sides, sources, strict=True)
    )
    numbers = {line.memory_id: f"[{at}]" for at, line in enumerate(lines, start=first)}
    resolution = edge.resolution or {}
    winner = resolution.get("winner_id")
    odds = f" ({edge.weight:.0%})" if edge.weight < 1.0 and winner is None else ""
    standing = f"open since {day(edge.created_at)}"
    if edge.resolved_at is not None:
        state = contradiction_state(edge.resolution)
        standing = f"{state} on {day(edge.resolved_at)}, raised on {day(edge.created_at)}"
    if moot:
        is_undone = winner is not None
        standing += ", undone since" if is_undone else ", one side is no longer in force"
    pair = f"{numbers[edge.from_id]} {edge.relation} {numbers[edge.to_id]}{odds}"
    screen.heading(f"{short_id(edge.edge_id)}  {pair}, {standing}")
    screen.block(records(lines, MachineZone(), first).rstrip(), indent=2)
    because = resolution.get("reason") or ""
    if (reason := reason_of(edge)) and reason != because:
        screen.block(f"reason: {reason}", indent=2)
    if edge.resolution is not None:
        prevails = "prevailed until it was retracted" if moot else "prevails"
        outcome = "both are correct" if winner is None else f"{short_id(winner)} {prevails}"
        screen.block(f"decision: {outcome}: {because}", indent=2)


def _verification(screen: Screen, report: VerifyReport, _: Call) -> None:
    screen.block(f"checked {text_of(report.checked)}")
    if report.findings:
        rows = [(item.code.value, item.message, item.subject or "") for item in report.findings]
        screen.table(("finding", "what", "subject"), rows)
    screen.line(report.summary)


SHOWS: Final[Mapping[str, Callable[[Screen, Any, Call], None]]] = {
    "Answer": _answer,
    "BuiltBulletin": _bulletin,
    "Bundle": _bundle,
    "Case": _case,
    "ContextBlock": _block,
    "ContradictionPage": _contradictions,
    "Memory": _memory,
    "Outcome": _outcome,
    "StoredBulletin": lambda screen, issued, _: screen.raw_lines(issued.body),
    "VerifyReport": _verification,
}
"""The functions that print results, by the name of the class."""
