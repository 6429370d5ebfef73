"""Commands that follow memories: impact (where one was used) and grounds (its evidence)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memgraph.model.enums import MemoryKind
from memgraph.surfaces.cli.builder import OrchestratorName, make_command, value
from memgraph.surfaces.cli.files import counted
from memgraph.surfaces.cli.formats import (
    as_json,
    citation,
    memory_line,
    moment,
    short,
    status_of,
    summary_of,
)
from memgraph.surfaces.cli.invocation import CommandResult, invocation
from memgraph.surfaces.cli.screen import Branch, Screen

if TYPE_CHECKING:
    from memgraph.model.graph import Link
    from memgraph.model.influence import (
        EvidenceReport,
        Impact,
        ReachedRun,
        ReceiptMention,
        SourceLine,
        SourceLines,
    )
    from memgraph.model.values import Memory

MOST_SHOWN = 10
LINE_CHARS = 160
WITHOUT_IT = "dependent memories were returned without it"
REACHED_COLUMNS = ("what", "name", "receipts", "of it", "first", "last", "left after it")
_PREFIXES = "|".join(kind.id_prefix for kind in MemoryKind)
_MEMORY_ID = re.compile(rf"(?:{_PREFIXES})[0-9A-Z]{{26}}")

AsTable = Annotated[bool, typer.Option("--table", help="Tables instead of a tree.")]
MaxNodes = Annotated[int, typer.Option(help="Memories and receipts to show; 1 to 10000.")]


def impact(
    context: typer.Context,
    orchestrator: OrchestratorName,
    memory_id: Annotated[str, typer.Argument(metavar="ID", help="A memory's id.")],
    max_nodes: MaxNodes = 1_000,
    as_of: Annotated[str | None, value("TIME", "Only what it reached by then, ISO 8601.")] = None,
    table: AsTable = False,
) -> CommandResult:
    """Show what a memory reached: recalls, contexts, bulletins, runs, and what depends on it.

    Memories stored by a run or a conversation after it received the memory need not result from it.
    """
    call = invocation(context)
    with call.orchestrator(orchestrator) as handle:
        result = handle.graph.impact(memory_id, max_nodes=max_nodes, as_of=as_of)

    def show(screen: Screen) -> None:
        if table:
            _impact_tables(screen, result)
        else:
            screen.tree(_impact_tree(result))
        screen.line(call.reach, style="dim")

    return CommandResult(as_json(result), show)


def grounds(
    context: typer.Context,
    orchestrator: OrchestratorName,
    name: Annotated[str, typer.Argument(metavar="ID", help="A memory's id, or a run's.")],
    is_run: Annotated[
        bool, typer.Option("--run", help="Treat ID as a run, even if it looks like a memory id.")
    ] = False,
    lines: Annotated[
        int, typer.Option(help="Show the lines of this many sources, nearest first; 0 to 1000.")
    ] = 20,
    max_nodes: MaxNodes = 1_000,
    table: AsTable = False,
) -> CommandResult:
    """Show the evidence behind a memory or a run, down to the lines of the files.

    For a run: the memories it was given, and what they depend on. For a memory: what it depends on,
    and what its run or conversation had been given before.
    """
    target = {"workflow_run_id" if is_run or not _MEMORY_ID.fullmatch(name) else "memory_id": name}
    call = invocation(context)
    with call.orchestrator(orchestrator) as handle:
        result = handle.graph.grounds(**target, max_nodes=max_nodes, lines=lines)

    def show(screen: Screen) -> None:
        if table:
            _grounds_tables(screen, result)
        else:
            screen.tree(_grounds_tree(result))
        screen.line(call.reach, style="dim")

    return CommandResult(as_json(result), show)


def _impact_tree(impact: Impact) -> Branch:
    memories = impact.memory_by_id
    root = Branch(memory_line(memories[impact.memory_id]), style="bold")
    _add_links(root, "depends on it", impact.derived, memories)
    own = impact.own_hand_outs
    _add_hand_outs(root.add(f"handed out {_times(impact, own)}"), own)
    further = impact.further_hand_outs
    if further:
        message = f"{WITHOUT_IT} {_times(impact, further)}"
        _add_hand_outs(root.add(message), further, names=True)
    for title, reached in (("run", impact.runs), ("conversation", impact.conversations)):
        if reached:
            owns = [_own_of(title, item, impact) for item in reached]
            note = "" if all(owns) else f", {sum(map(bool, owns))} given the memory itself"
            branch = root.add(f"{title}s: {len(reached)}{note}")
            for value, times in zip(reached[:MOST_SHOWN], owns, strict=False):
                _add_reached(branch, value, times, memories)
            _add_more(branch, len(reached))
    _add_cut(root, impact.cut_reasons)
    return root


def _grounds_tree(report: EvidenceReport) -> Branch:
    memories = report.memory_by_id
    lines = {line.memory_id: line for line in report.lines}
    if report.memory_id is not None:
        root = Branch(memory_line(memories[report.memory_id]), style="bold")
        _add_source(root, report.memory_id, report, lines)
    else:
        root = Branch(f"run {report.workflow_run_id}", style="bold")
    if report.hand_outs:
        handed = root.add(f"had been given: {counted(len(report.hand_outs), 'receipt')}")
        _add_hand_outs(handed, report.hand_outs)
    elif report.workflow_run_id is not None:
        root.add("nothing was handed out to it")
    places: dict[str, Branch] = {}
    if report.memory_id is not None:
        places[report.memory_id] = root.add("depends on") if report.links else root
    elif report.given:
        branch = root.add(f"{counted(len(report.given), 'memory', 'memories')} given")
        for item in report.given:
            places[item] = _add_ground(branch, "", item, report, lines)
    for link in report.links:
        places[link.memory_id] = _add_ground(
            places.get(link.via_id, root), f"{_how(link)}: ", link.memory_id, report, lines
        )
    _add_cut(root, report.cut_reasons)
    return root


def _add_ground(
    parent: Branch,
    prefix: str,
    memory_id: str,
    report: EvidenceReport,
    lines: Mapping[str, SourceLines],
) -> Branch:
    removed = memory_id in report.refuted
    style = "yellow" if removed else ""
    branch = parent.add(f"{prefix}{memory_line(report.memory_by_id[memory_id])}", style=style)
    _add_source(branch, memory_id, report, lines)
    return branch


def _add_source(
    branch: Branch, memory_id: str, report: EvidenceReport, lines: Mapping[str, SourceLines]
) -> None:
    source = report.source_by_id[report.memory_by_id[memory_id].source_id]
    source_lines = lines.get(memory_id)
    state = (
        ""
        if source_lines is None or source_lines.state in ("kept", "none")
        else f" ({source_lines.state})"
    )
    place = branch.add(f"from {citation(source)}{state}", style="dim")
    for line in () if source_lines is None else source_lines.lines:
        place.add(_line_text(line))
    for turn in () if source_lines is None else source_lines.turns:
        speaker = turn.speaker or "somebody"
        place.add(short(f"{speaker}, {moment(turn.at)}: {turn.text}", LINE_CHARS))
    for support in report.supports:
        if support.memory_id == memory_id:
            citation_text = citation(report.source_by_id[support.source_id])
            branch.add(f"also stated in {citation_text}, {moment(support.added_at)}", style="dim")


def _line_text(line: SourceLine) -> str:
    return _indented(line.text) if line.number is None else f"{line.number}: {_indented(line.text)}"


def _indented(text: str) -> str:
    """Return a line of a file, shortened, with its indentation."""
    room = min(len(text) - len(text.lstrip()), LINE_CHARS // 2)
    return " " * room + short(text, LINE_CHARS - room)


def _add_links(
    root: Branch, title: str, links: Iterable[Link], memories: Mapping[str, Memory]
) -> None:
    """Add each link below the memory through which it was reached."""
    branch: Branch | None = None
    places: dict[str, Branch] = {}
    for link in links:
        branch = branch or root.add(title)
        parent = places.get(link.via_id, branch)
        line = f"{_how(link)}: {memory_line(memories[link.memory_id])}"
        places[link.memory_id] = parent.add(line)


def _times(impact: Impact, hand_outs: Sequence[ReceiptMention]) -> str:
    """Describe how often a memory was returned, and for which purposes."""
    more = " or more" if "max_receipts" in impact.cut_reasons else ""
    purposes = sorted(Counter(hand_out.purpose for hand_out in hand_outs).items())
    message = ", ".join(f"{name} {count}" for name, count in purposes)
    return f"{counted(len(hand_outs), 'time')}{more}" + (f": {message}" if message else "")


def _add_hand_outs(
    branch: Branch, hand_outs: Sequence[ReceiptMention], *, names: bool = False
) -> None:
    """Add the receipts to a branch; with ``names``, also the memories that they returned."""
    for hand_out in hand_outs[:MOST_SHOWN]:
        which = f": {_few(hand_out.memory_ids)}" if names else ""
        recipient = _for_whom(hand_out)
        branch.add(
            f"{hand_out.receipt_id}  {hand_out.purpose}, {moment(hand_out.at)}{recipient}{which}"
        )
    _add_more(branch, len(hand_outs))


def _add_reached(branch: Branch, run: ReachedRun, own: int, memories: Mapping[str, Memory]) -> None:
    times = counted(run.receipts, "time")
    without = run.receipts - own
    if without:
        times += f", {without} of them without the memory" if own else " without the memory"
    place = branch.add(f"{run.name}: given {times}, {moment(run.first_at)} to {_last(run)}")
    for item in run.left:
        place.add(f"left afterwards: {memory_line(memories[item])}")


def _own_of(kind: str, run: ReachedRun, impact: Impact) -> int:
    """Return how often a run or a conversation was given the memory itself."""
    place = "workflow_run_id" if kind == "run" else "conversation_id"
    return sum(getattr(hand_out, place) == run.name for hand_out in impact.own_hand_outs)


def _add_more(branch: Branch, count: int) -> None:
    if count > MOST_SHOWN:
        branch.add(f"and {count - MOST_SHOWN} more: --table or --json", style="dim")


def _add_cut(root: Branch, reasons: Sequence[str]) -> None:
    if reasons:
        root.add(f"cut: {', '.join(reasons)}", style="yellow")


def _impact_tables(screen: Screen, impact: Impact) -> None:
    memories = impact.memory_by_id
    screen.heading(memory_line(memories[impact.memory_id]))
    _links_table(screen, "depends on it", impact.derived, memories)
    _hand_outs_table(screen, impact.own_hand_outs)
    _hand_outs_table(screen, impact.further_hand_outs, WITHOUT_IT)
    rows = [
        (
            kind,
            item.name,
            str(item.receipts),
            str(_own_of(kind, item, impact)),
            moment(item.first_at),
            _last(item),
            str(len(item.left)),
        )
        for kind, reached in (("run", impact.runs), ("conversation", impact.conversations))
        for item in reached
    ]
    _table(screen, "reached", REACHED_COLUMNS, rows)
    _cut(screen, impact.cut_reasons)


def _grounds_tables(screen: Screen, report: EvidenceReport) -> None:
    memories = report.memory_by_id
    if report.memory_id is not None:
        screen.heading(memory_line(memories[report.memory_id]))
    _hand_outs_table(screen, report.hand_outs)
    _links_table(screen, "evidence", report.links, memories)
    sources = report.source_by_id
    rows = [
        (memory.memory_id, citation(sources[memory.source_id]), short(summary_of(memory)))
        for memory in report.memories
    ]
    _table(screen, "sources", ("id", "from", "summary"), rows)
    lines = [
        (memory.memory_id, memory.state, str(line.number or ""), _indented(line.text))
        for memory in report.lines
        for line in memory.lines
    ]
    _table(screen, "lines", ("id", "file", "line", "text"), lines)
    _cut(screen, report.cut_reasons)


def _links_table(
    screen: Screen, title: str, links: Iterable[Link], memories: Mapping[str, Memory]
) -> None:
    rows = [
        (
            link.memory_id,
            str(link.distance),
            _how(link),
            link.via_id,
            status_of(memories[link.memory_id]),
            short(summary_of(memories[link.memory_id])),
        )
        for link in links
    ]
    _table(screen, title, ("id", "steps", "how", "through", "status", "summary"), rows)


def _hand_outs_table(
    screen: Screen, hand_outs: Iterable[ReceiptMention], title: str = "handed out"
) -> None:
    rows = [
        (
            hand_out.receipt_id,
            moment(hand_out.at),
            hand_out.purpose,
            _for_whom(hand_out).removeprefix(", "),
            _few(hand_out.memory_ids),
        )
        for hand_out in hand_outs
    ]
    _table(screen, title, ("id", "when", "what for", "for whom", "memories"), rows)


def _table(
    screen: Screen, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    if rows:
        screen.line()
        screen.heading(title)
        screen.table(columns, rows)


def _cut(screen: Screen, reasons: Sequence[str]) -> None:
    if reasons:
        screen.line(f"cut: {', '.join(reasons)}", style="yellow")


def _for_whom(mention: ReceiptMention) -> str:
    readers = (
        ("run", mention.workflow_run_id),
        ("step", mention.step_id),
        ("conversation", mention.conversation_id),
        ("bulletin", mention.bulletin_id),
    )
    return "".join(f", {name} {value}" for name, value in readers if value is not None)


def _how(link: Link) -> str:
    return "derived" if link.edge_type is None else link.edge_type.value


def _few(memory_ids: Sequence[str]) -> str:
    return ", ".join(memory_ids[:3]) + (" …" if len(memory_ids) > 3 else "")


def _last(run: ReachedRun) -> str:
    return moment(run.last_at)


COMMANDS: dict[str, Any] = {
    "impact": make_command(impact, "impact"),
    "grounds": make_command(grounds, "grounds"),
}
