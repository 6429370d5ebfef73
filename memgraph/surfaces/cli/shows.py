"""Show results that are neither a table nor an outline: answers, blocks, contradictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from memgraph.ids import short_id
from memgraph.model.enums import MarkKind
from memgraph.surfaces.cli.formats import (
    SHORT_IDS,
    below_drop_zone,
    date_of,
    decisions,
    edge_line,
    event_period,
    journal_line,
    memory_line,
    moment,
    short,
    show_pair,
    summary_of,
    with_short,
)
from memgraph.surfaces.cli.render import (
    COLUMNS,
    Detail,
    fields_of,
    show_detail,
    show_result,
    show_table,
    text_of,
)
from memgraph.surfaces.cli.screen import Screen, counted, note

if TYPE_CHECKING:
    from memgraph.audit.findings import VerifyReport
    from memgraph.model.access import StoreHealth
    from memgraph.model.context import Answer, BuiltBulletin, ContextBlock
    from memgraph.model.graph import Case, CaseSide, Contradiction, ContradictionPage
    from memgraph.model.recall import Bundle, Degraded, Mark, RecallItem
    from memgraph.model.receipts import Receipt
    from memgraph.model.values import Memory, Outcome

Call = Mapping[str, Any]
"""The arguments of a command by name, with ``orchestrator`` and what was added to its data."""
TEXT_CHARS: Final = 400
MORE: Final = {
    "max_edges": "there are more edges; see them with memgraph subgraph",
    "token_budget": "more memories match; raise --token-budget",
    "top_n": "more memories match; raise --top-n",
}
"""The remedy for each of ``Bundle.cut_reasons``."""


def show(screen: Screen, result: Any, call: Call) -> None:
    """Print a result by its type; see ``render`` for all others."""
    special = SHOWS.get(type(result).__name__)
    if special is None:
        show_result(screen, result)
    else:
        special(screen, result, call)


def _outcome(screen: Screen, outcome: Outcome, _: Call) -> None:
    screen.line(f"{outcome.outcome} {with_short(outcome.memory_id)}")
    for other, reason in outcome.reasons.items():
        screen.line(f"repeats {other}: {reason}")


def _bundle(screen: Screen, bundle: Bundle, call: Call) -> None:
    if not bundle.items:
        screen.line("no memory matches")
    places = {item.memory.memory_id: f"[{n}]" for n, item in enumerate(bundle.items, start=1)}
    for item in bundle.items:
        _recalled(screen, item, places)
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
        _explanation(screen, bundle)
    first = bundle.items[0].memory.memory_id if bundle.items else None
    of_first = [edge for edge in bundle.edges if first in (edge.from_id, edge.to_id)]
    for line in decisions(call["orchestrator"], of_first):
        screen.line(line)
    if any(map(_odds, (mark for item in bundle.items for mark in item.marks))):
        screen.line(SHORT_IDS, style="dim")
    _degraded(bundle.degraded)
    if bundle.cut:
        note("; ".join(MORE[reason] for reason in bundle.cut_reasons))


def _recalled(screen: Screen, item: RecallItem, places: Mapping[str, str]) -> None:
    memory = item.memory
    status = "" if memory.status.value == "active" else f", {memory.status.value}"
    speaker = "" if memory.source_role is None else f", {memory.source_role}"
    place = places[memory.memory_id]
    screen.heading(
        f"{place} {memory.memory_id}  {memory.type.value}{status}, {date_of(memory)}{speaker}"
    )
    # The texts of records and documents begin with a title on its own line.
    title, _, text = memory.content.strip().partition("\n")
    for part in (title, text) if text else (memory.content,):
        screen.block(short(part, TEXT_CHARS), indent=3)
    screen.line(f"   from {below_drop_zone(item.citation)}", style="dim")
    for mark in item.marks:
        other = places.get(mark.memory_id) or f"#{short_id(mark.memory_id)}"
        screen.line(f"   {mark.relation} {other}{_odds(mark)}", style="yellow")
    if item.brought_by is not None:
        brought_by = places.get(item.brought_by) or f"#{short_id(item.brought_by)}"
        screen.line(f"   shown because of {brought_by}", style="dim")


def _odds(mark: Mark) -> str:
    """Return the probability of a mark and its short id; "" for what is in force."""
    if mark.kind in (MarkKind.REPLACES, MarkKind.REPLACED_BY):
        return ""
    odds = f"{mark.weight:.0%}, " if mark.weight < 1.0 else ""
    return f" ({odds}{short_id(mark.edge_id)})"


def _explanation(screen: Screen, bundle: Bundle) -> None:
    """Show the rank in every leg (empty if it did not find the memory), and every modifier."""
    legs = sorted({leg for item in bundle.items for leg in item.legs})
    modifiers = list(dict.fromkeys(name for item in bundle.items for name in item.modifiers))
    names = (name.replace("_", " ") for name in modifiers)
    screen.line()
    screen.table(
        ("#", "score", *legs, *names, "effective confidence"),
        [
            (
                str(place),
                f"{item.score:.5f}",
                *(str(item.legs.get(leg, "")) for leg in legs),
                *(f"{item.modifiers.get(name, 1.0):.3f}" for name in modifiers),
                f"{item.effective_confidence:.3f}",
            )
            for place, item in enumerate(bundle.items, start=1)
        ],
    )
    screen.line(f"receipt {bundle.receipt_id}, about {bundle.token_cost} tokens")


def _degraded(items: Sequence[Degraded]) -> None:
    for item in items:
        note(f"degraded[{item.code}]: {item.text}")


def _block(screen: Screen, block: ContextBlock, call: Call) -> None:
    screen.raw_lines(block.text)
    if call["explain"]:
        if block.memories:
            show_table(screen, list(block.memories.values()))
        screen.line(
            f"receipt {block.receipt_id}, {block.token_cost} tokens by {block.counter},"
            f" {block.left_out} left out"
        )
    if call["empty"] == "budget_too_small":
        note(f"empty[{call['empty']}]: the budget is too small for any of {block.left_out}")
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
    if built.bulletin.memory_ids:
        screen.raw_lines(built.bulletin.text)
    elif built.warning is None:
        screen.line("The bulletin is empty: no memory that it would name is visible.")
    if built.warning is not None:
        note(f"warning[{built.warning}]: {built.cause}")


def _contradictions(screen: Screen, page: ContradictionPage, call: Call) -> None:
    if not page.items:
        screen.line("nothing to decide" if not call["resolved"] else "nothing found")
    show_pairs(screen, page.items)


def _memory(screen: Screen, memory: Memory, call: Call) -> None:
    """Print a memory's whole content, all fields that have a value, and its open pairs."""
    screen.heading(f"{memory.memory_id}  {memory.type.value}, {memory.shown_status.value}")
    screen.block(memory.content or "[erased]", indent=2)
    shown = {"short_id": short_id(memory.memory_id), **fields_of(memory)}
    shown["event_time"] = event_period(memory) or shown["event_time"]
    texts = [(name.replace("_", " "), text_of(value)) for name, value in shown.items()]
    screen.fields([(name, text) for name, text in texts if text and name not in NOT_OF_MEMORIES])
    if call["pairs"]:
        screen.line()
    show_pairs(screen, call["pairs"])


NOT_OF_MEMORIES: Final = frozenset(
    (
        *("memory id", "orchestrator id", "type", "status", "content", "summary"),
        *("sequence", "item id", "content hash", "token cost"),
    )
)
"""The fields of a memory that its title has, or that only programs need."""


def show_pairs(screen: Screen, pairs: Sequence[Contradiction]) -> None:
    """Print contradictions and marks, and what their short ids are."""
    for at, pair in enumerate(pairs):
        sides = pair.first, pair.second
        show_pair(screen, pair.edge, sides, pair.sources, moot=pair.moot, first=2 * at + 1)
    if pairs:
        screen.line(SHORT_IDS, style="dim")


def _case(screen: Screen, case: Case, _: Call) -> None:
    memories = [side.memory for side in case.sides]
    show_pair(screen, case.edge, memories, [side.source for side in case.sides], moot=case.moot)
    for side in case.sides:
        show_detail(screen, _side(side))
    if case.suggestion is not None:
        winner, reasons = case.suggestion.winner_id, case.suggestion.reasons
        likely = "inconclusive" if winner is None else f"{short_id(winner)} is more likely"
        why = [f"{item.code.replace('_', ' ')}: {short_id(item.favours)}" for item in reasons]
        odds = f"{likely} ({case.suggestion.confidence:.0%})"
        screen.entry(f"suggestion: {'; '.join((odds, *why))}")
    screen.heading("journal")
    for item in case.journal:
        screen.entry(journal_line(item), depth=1)
    if case.cut:
        screen.entry("there may be more: --json")
    screen.line(SHORT_IDS, style="dim")


def _side(side: CaseSide) -> Detail:
    influence = side.influence
    reached = [
        f"in {counted(influence.recalls, 'answer')}" if influence.recalls else "",
        f"{counted(influence.derived, 'memory depends', 'memories depend')} on it"
        if influence.derived
        else "",
        *(f"run {name}" for name in influence.runs),
        *(f"conversation {name}" for name in influence.conversations),
    ]
    return Detail(
        f"evidence for {memory_line(side.memory)}",
        {
            "source": side.source,
            "further sources": side.supports,
            "independent sources": side.independent_sources - 1 and side.independent_sources,
            "said": moment(side.said_at),
            "confidence now": side.effective_confidence,
            "confirmed": side.confirmed,
            "withdrawn evidence": side.premise,
            "used": ", ".join(filter(None, reached)),
        },
    )


def _subgraph(screen: Screen, subgraph: Any, _: Call) -> None:
    hops = ("hops", lambda memory: subgraph.distances[memory.memory_id])
    if subgraph.nodes:
        show_table(screen, subgraph.nodes, (*COLUMNS["Memory"], hops))
    for edge in subgraph.edges:
        screen.entry(edge_line(edge), depth=1)
    if subgraph.missing:
        screen.line(f"not found: {', '.join(subgraph.missing)}", style="yellow")
    if subgraph.cut:
        screen.line(f"cut: {', '.join(subgraph.cut_reasons)}", style="yellow")


def _receipt(screen: Screen, receipt: Receipt, call: Call) -> None:
    show_detail(screen, receipt)
    if receipt.items:
        texts = ("text", lambda item: _beginning(call["texts"].get(item.memory_id)))
        memory_id, *columns = COLUMNS["ReceiptItem"]
        show_table(screen, receipt.items, (memory_id, texts, *columns))
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


def _beginning(memory: Memory | None) -> str:
    return "" if memory is None else short(summary_of(memory)) or "[erased]"


def _health(screen: Screen, health: StoreHealth, _: Call) -> None:
    many = counted(health.memories, "active memory", "active memories")
    screen.line(f"{many}; turns of conversations are not counted")
    show_table(screen, health.measures)
    for measure in health.measures:
        if measure.examples:
            screen.heading(measure.measure.value)
            show_table(screen, measure.examples)


def _verification(screen: Screen, report: VerifyReport, _: Call) -> None:
    checked = ", ".join(
        f"{count} {name.replace('_', ' ')}" for name, count in report.checked.items()
    )
    screen.block(f"checked {checked}")
    rows = [(item.code.value, item.message, item.subject or "") for item in report.findings]
    if rows:
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
    "Receipt": _receipt,
    "StoreHealth": _health,
    "StoredBulletin": lambda screen, issued, _: screen.raw_lines(issued.body),
    "Subgraph": _subgraph,
    "VerifyReport": _verification,
}
"""The functions that print results, by the name of the class."""
