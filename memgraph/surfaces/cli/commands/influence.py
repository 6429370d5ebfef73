"""Following memories: impact, their uses, and grounds, the evidence for one or a run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from memgraph.model.enums import MemoryKind
from memgraph.surfaces.cli.builder import OrchestratorName, make_command, value
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
from memgraph.surfaces.cli.text import counted

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
WITHOUT_IT = "what rests on it was handed out without it"
REACHED_COLUMNS = ("what", "name", "receipts", "of it", "first", "last", "left after it")
_PREFIXES = "|".join(kind.id_prefix for kind in MemoryKind)
_MEMORY_ID = re.compile(rf"(?:{_PREFIXES})[0-9A-Z]{{26}}")

AsTable = Annotated[bool, typer.Option("--table", help="Tables instead of a tree.")]
MaxNodes = Annotated[int, typer.Option(help="Memories, and receipts, at most; 1 to 10000.")]


def impact(
    context: typer.Context,
    orchestrator: OrchestratorName,
    memory_id: Annotated[str, typer.Argument(metavar="ID", help="A memory's id.")],
    max_nodes: MaxNodes = 1_000,
    as_of: Annotated[str | None, value("TIME", "What it had reached by then, ISO 8601.")] = None,
    table: AsTable = False,
) -> CommandResult:
    """Show what a memory reached: recalls, contexts, bulletins, runs, and what depends on it.

    Memories of a run or a conversation after it was given the memory may or may not result from it.
    """
    given = invocation(context)
    with given.orchestrator(orchestrator) as handle:
        found = handle.graph.impact(memory_id, max_nodes=max_nodes, as_of=as_of)

    def show(screen: Screen) -> None:
        if table:
            _impact_tables(screen, found)
        else:
            screen.tree(_impact_tree(found))
        screen.line(given.reach, style="dim")

    return CommandResult(as_json(found), show)


def grounds(
    context: typer.Context,
    orchestrator: OrchestratorName,
    name: Annotated[str, typer.Argument(metavar="ID", help="A memory's id, or a run's.")],
    is_run: Annotated[
        bool, typer.Option("--run", help="It is a run, though it looks like a memory's id.")
    ] = False,
    lines: Annotated[
        int, typer.Option(help="Show the lines of so many sources, the nearest; 0 to 1000.")
    ] = 20,
    max_nodes: MaxNodes = 1_000,
    table: AsTable = False,
) -> CommandResult:
    """Show the evidence behind a memory or a run, down to the lines of the files.

    Of a run: what it was given, and what that depends on. Of a memory: what it depends on, and what
    the run or the conversation that it comes from had been given before.
    """
    asked = {"workflow_run_id" if is_run or not _MEMORY_ID.fullmatch(name) else "memory_id": name}
    given = invocation(context)
    with given.orchestrator(orchestrator) as handle:
        found = handle.graph.grounds(**asked, max_nodes=max_nodes, lines=lines)

    def show(screen: Screen) -> None:
        if table:
            _grounds_tables(screen, found)
        else:
            screen.tree(_grounds_tree(found))
        screen.line(given.reach, style="dim")

    return CommandResult(as_json(found), show)


def _impact_tree(found: Impact) -> Branch:
    memories = found.memory_by_id
    root = Branch(memory_line(memories[found.memory_id]), style="bold")
    _add_links(root, "what rests on it", found.derived, memories)
    own = found.own_hand_outs
    _add_hand_outs(root.add(f"handed out {_times(found, own)}"), own)
    further = found.further_hand_outs
    if further:
        told = f"{WITHOUT_IT} {_times(found, further)}"
        _add_hand_outs(root.add(told), further, names=True)
    for title, reached in (("run", found.runs), ("conversation", found.conversations)):
        if reached:
            owns = [_own_of(title, each, found) for each in reached]
            some = "" if all(owns) else f", {sum(map(bool, owns))} given it itself"
            branch = root.add(f"{title}s: {len(reached)}{some}")
            for each, times in zip(reached[:MOST_SHOWN], owns, strict=False):
                _add_reached(branch, each, times, memories)
            _add_more(branch, len(reached))
    _add_cut(root, found.cut_reasons)
    return root


def _grounds_tree(found: EvidenceReport) -> Branch:
    memories = found.memory_by_id
    lines = {each.memory_id: each for each in found.lines}
    if found.memory_id is not None:
        root = Branch(memory_line(memories[found.memory_id]), style="bold")
        _add_source(root, found.memory_id, found, lines)
    else:
        root = Branch(f"run {found.workflow_run_id}", style="bold")
    if found.hand_outs:
        handed = root.add(f"had been given: {counted(len(found.hand_outs), 'receipt')}")
        _add_hand_outs(handed, found.hand_outs)
    elif found.workflow_run_id is not None:
        root.add("nothing was handed out to it")
    places: dict[str, Branch] = {}
    if found.memory_id is not None:
        places[found.memory_id] = root.add("rests on") if found.links else root
    elif found.given:
        branch = root.add(f"{counted(len(found.given), 'memory', 'memories')} given")
        for one in found.given:
            places[one] = _add_ground(branch, "", one, found, lines)
    for link in found.links:
        places[link.memory_id] = _add_ground(
            places.get(link.via_id, root), f"{_how(link)}: ", link.memory_id, found, lines
        )
    _add_cut(root, found.cut_reasons)
    return root


def _add_ground(
    parent: Branch,
    how: str,
    memory_id: str,
    found: EvidenceReport,
    lines: Mapping[str, SourceLines],
) -> Branch:
    gone = memory_id in found.refuted
    style = "yellow" if gone else ""
    branch = parent.add(f"{how}{memory_line(found.memory_by_id[memory_id])}", style=style)
    _add_source(branch, memory_id, found, lines)
    return branch


def _add_source(
    branch: Branch, memory_id: str, found: EvidenceReport, lines: Mapping[str, SourceLines]
) -> None:
    source = found.source_by_id[found.memory_by_id[memory_id].source_id]
    told = lines.get(memory_id)
    state = "" if told is None or told.state in ("kept", "none") else f" ({told.state})"
    place = branch.add(f"from {citation(source)}{state}", style="dim")
    for line in () if told is None else told.lines:
        place.add(_line_text(line))
    for turn in () if told is None else told.turns:
        who = turn.speaker or "somebody"
        place.add(short(f"{who}, {moment(turn.at)}: {turn.text}", LINE_CHARS))
    for each in found.supports:
        if each.memory_id == memory_id:
            again = citation(found.source_by_id[each.source_id])
            branch.add(f"said again in {again}, {moment(each.added_at)}", style="dim")


def _line_text(line: SourceLine) -> str:
    return _indented(line.text) if line.number is None else f"{line.number}: {_indented(line.text)}"


def _indented(text: str) -> str:
    """Return a line of a file with its indentation as it is shown."""
    room = min(len(text) - len(text.lstrip()), LINE_CHARS // 2)
    return " " * room + short(text, LINE_CHARS - room)


def _add_links(
    root: Branch, title: str, links: Iterable[Link], memories: Mapping[str, Memory]
) -> None:
    """Add links below the memory from which they were reached."""
    branch: Branch | None = None
    places: dict[str, Branch] = {}
    for link in links:
        branch = branch or root.add(title)
        parent = places.get(link.via_id, branch)
        line = f"{_how(link)}: {memory_line(memories[link.memory_id])}"
        places[link.memory_id] = parent.add(line)


def _times(found: Impact, hand_outs: Sequence[ReceiptMention]) -> str:
    """Return how often, and for what purposes."""
    more = " or more" if "max_receipts" in found.cut_reasons else ""
    purposes = sorted(Counter(each.purpose for each in hand_outs).items())
    told = ", ".join(f"{name} {count}" for name, count in purposes)
    return f"{counted(len(hand_outs), 'time')}{more}" + (f": {told}" if told else "")


def _add_hand_outs(
    branch: Branch, hand_outs: Sequence[ReceiptMention], *, names: bool = False
) -> None:
    """Add hand-outs; ``names``: with the memories that were handed out."""
    for each in hand_outs[:MOST_SHOWN]:
        which = f": {_few(each.memory_ids)}" if names else ""
        branch.add(f"{each.receipt_id}  {each.purpose}, {moment(each.at)}{_for_whom(each)}{which}")
    _add_more(branch, len(hand_outs))


def _add_reached(
    branch: Branch, each: ReachedRun, own: int, memories: Mapping[str, Memory]
) -> None:
    times = counted(each.receipts, "time")
    without = each.receipts - own
    if without:
        times += f", {without} of them without it" if own else " without it"
    place = branch.add(f"{each.name}: given {times}, {moment(each.first_at)} to {_last(each)}")
    for one in each.left:
        place.add(f"left afterwards: {memory_line(memories[one])}")


def _own_of(kind: str, each: ReachedRun, found: Impact) -> int:
    """Return how often a run or a conversation was given the memory itself."""
    place = "workflow_run_id" if kind == "run" else "conversation_id"
    return sum(getattr(one, place) == each.name for one in found.own_hand_outs)


def _add_more(branch: Branch, count: int) -> None:
    if count > MOST_SHOWN:
        branch.add(f"and {count - MOST_SHOWN} more: --table or --json", style="dim")


def _add_cut(root: Branch, reasons: Sequence[str]) -> None:
    if reasons:
        root.add(f"cut: {', '.join(reasons)}", style="yellow")


def _impact_tables(screen: Screen, found: Impact) -> None:
    memories = found.memory_by_id
    screen.heading(memory_line(memories[found.memory_id]))
    _links_table(screen, "what rests on it", found.derived, memories)
    _hand_outs_table(screen, found.own_hand_outs)
    _hand_outs_table(screen, found.further_hand_outs, WITHOUT_IT)
    rows = [
        (
            kind,
            each.name,
            str(each.receipts),
            str(_own_of(kind, each, found)),
            moment(each.first_at),
            _last(each),
            str(len(each.left)),
        )
        for kind, reached in (("run", found.runs), ("conversation", found.conversations))
        for each in reached
    ]
    _table(screen, "reached", REACHED_COLUMNS, rows)
    _cut(screen, found.cut_reasons)


def _grounds_tables(screen: Screen, found: EvidenceReport) -> None:
    memories = found.memory_by_id
    if found.memory_id is not None:
        screen.heading(memory_line(memories[found.memory_id]))
    _hand_outs_table(screen, found.hand_outs)
    _links_table(screen, "what it rests on", found.links, memories)
    sources = found.source_by_id
    rows = [
        (each.memory_id, citation(sources[each.source_id]), short(summary_of(each)))
        for each in found.memories
    ]
    _table(screen, "sources", ("id", "from", "summary"), rows)
    lines = [
        (each.memory_id, each.state, str(line.number or ""), _indented(line.text))
        for each in found.lines
        for line in each.lines
    ]
    _table(screen, "lines", ("id", "file", "line", "text"), lines)
    _cut(screen, found.cut_reasons)


def _links_table(
    screen: Screen, title: str, links: Iterable[Link], memories: Mapping[str, Memory]
) -> None:
    rows = [
        (
            each.memory_id,
            str(each.distance),
            _how(each),
            each.via_id,
            status_of(memories[each.memory_id]),
            short(summary_of(memories[each.memory_id])),
        )
        for each in links
    ]
    _table(screen, title, ("id", "steps", "how", "through", "status", "summary"), rows)


def _hand_outs_table(
    screen: Screen, hand_outs: Iterable[ReceiptMention], title: str = "handed out"
) -> None:
    rows = [
        (
            each.receipt_id,
            moment(each.at),
            each.purpose,
            _for_whom(each).removeprefix(", "),
            _few(each.memory_ids),
        )
        for each in hand_outs
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


def _for_whom(each: ReceiptMention) -> str:
    named = (
        ("run", each.workflow_run_id),
        ("step", each.step_id),
        ("conversation", each.conversation_id),
        ("bulletin", each.bulletin_id),
    )
    return "".join(f", {name} {value}" for name, value in named if value is not None)


def _how(link: Link) -> str:
    return "derived" if link.edge_type is None else link.edge_type.value


def _few(memory_ids: Sequence[str]) -> str:
    return ", ".join(memory_ids[:3]) + (" …" if len(memory_ids) > 3 else "")


def _last(each: ReachedRun) -> str:
    return moment(each.last_at)


COMMANDS = {
    function.__name__: make_command(function, function.__name__) for function in (impact, grounds)
}
