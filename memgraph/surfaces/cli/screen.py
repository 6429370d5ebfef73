"""Print lines, tables, trees and progress for people. Only this module imports rich."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING

from memgraph.surfaces.cli.files import plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.tree import Tree

# In a pipe or a file, prose is wrapped at this width. Table rows and tree nodes are never wrapped.
PIPED_WIDTH = 100
STAGE_CHARS = 40
LINES_EVERY_S = 5.0
_UNWRAPPED_WIDTH = 100_000
_GAP = 3
# The least width at which the last column of a table is readable.
_MIN_LAST_COLUMN = 18
# A longer value is prose, which is readable without the name of its column.
_LONG_VALUE = 30

STATUS_STYLE = {
    "active": "green",
    "superseded": "yellow",
    "retracted": "red",
    "stored": "green",
    "processed": "green",
    "duplicate": "yellow",
    "skipped": "yellow",
    "rejected": "red",
}


class Screen:
    """Prints to standard output for a person. All text is passed through ``plain``."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console: Console = Console(
            file=sys.stdout,
            markup=False,
            emoji=False,
            highlight=False,
            width=_width(),
            soft_wrap=False,
        )

    def line(self, text: str = "", *, style: str | None = None) -> None:
        """Print one line. The terminal wraps a long one, so that it can be copied as one line."""
        self._console.print(plain(text), style=style, soft_wrap=True)

    def block(self, text: str, *, indent: int = 0) -> None:
        """Print text of several lines, wrapped at words."""
        from rich.text import Text

        width = max(self._console.width - indent, 20)
        for line in Text(plain(text, keep_lines=True)).wrap(self._console, width):
            self._console.print(" " * indent + line.plain.rstrip(), soft_wrap=True)

    def raw_lines(self, text: str) -> None:
        """Print text of several lines unchanged, without terminal control characters."""
        self._console.print(plain(text, keep_lines=True), soft_wrap=True, end="")

    def heading(self, text: str) -> None:
        self.line(text, style="bold")

    def fields(self, rows: Sequence[tuple[str, str]]) -> None:
        """Print names and values, one pair per line."""
        self.table(("", ""), rows, header=False)

    def table(
        self, columns: Sequence[str], rows: Sequence[Sequence[str]], *, header: bool = True
    ) -> None:
        """Print a table. Long cells are folded, never cut, and ids are never split.

        If the terminal is too narrow, the last columns are printed below each row.
        """
        from rich.cells import cell_len

        cells = [[plain(cell) for cell in row] for row in rows]
        if header and self._console.is_terminal:
            columns_with_cells = zip(columns, *cells, strict=True)
            widths = [max(cell_len(cell) for cell in column) for column in columns_with_cells]
            if sum(widths[:-1]) + _GAP * len(widths[1:]) + _MIN_LAST_COLUMN > self._console.width:
                self._stacked(columns, cells, widths)
                return
        self._folded(columns, cells, header=header)

    def _stacked(
        self, columns: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int]
    ) -> None:
        """Print the columns of a row that fit on one line, and the others indented below it."""
        from rich.cells import set_cell_size
        from rich.text import Text

        ends = [sum(widths[: n + 1]) + _GAP * n for n in range(len(widths) - 1)]
        fitting = max(sum(end <= self._console.width for end in ends), 1)
        gap = " " * _GAP

        def first_line(cells: Sequence[str]) -> Text:
            parts = [
                Text(set_cell_size(cell, width), STATUS_STYLE.get(cell, ""))
                for cell, width in zip(cells[:fitting], widths, strict=False)
            ]
            line = Text(gap).join(parts)
            line.rstrip()
            return line

        heading = first_line(columns)
        heading.stylize("bold")
        self._console.print(heading, soft_wrap=True)
        self._console.print("─" * min(ends[fitting - 1], self._console.width))
        for row in rows:
            self._console.print(first_line(row), soft_wrap=True)
            rest = list(zip(columns, row, strict=True))[fitting:]
            prose = len(rest) == 1 and widths[-1] > _LONG_VALUE
            text = ", ".join(cell if prose else f"{name} {cell}" for name, cell in rest if cell)
            if text:
                self.block(text, indent=2)

    def _folded(
        self, columns: Sequence[str], rows: Sequence[Sequence[str]], *, header: bool
    ) -> None:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        table = Table(
            box=SIMPLE_HEAD if header else None,
            show_header=header,
            pad_edge=False,
            show_edge=False,
            header_style="bold",
            padding=(0, 2, 0, 0),
        )
        for name in columns:
            table.add_column(Text(name), overflow="fold", no_wrap=name == "id")
        for row in rows:
            table.add_row(*(Text(cell, STATUS_STYLE.get(cell, "")) for cell in row))
        self._print_lines(table)

    def tree(self, root: Branch) -> None:
        """Print a tree with guide lines."""
        self._print_lines(root.rendered())

    def _print_lines(self, renderable: Table | Tree) -> None:
        """Print at the terminal's width, or unwrapped in a pipe or a file."""
        from rich.console import Console

        if self._console.is_terminal:
            self._console.print(renderable)
            return
        lines = StringIO()
        Console(file=lines, markup=False, width=_UNWRAPPED_WIDTH).print(renderable)
        for line in lines.getvalue().splitlines():
            self._console.print(line.rstrip(), soft_wrap=True)


class Branch:
    """A node of a tree to print."""

    def __init__(self, text: str, *, style: str = "") -> None:
        self.text = text
        self._style = style
        self._children: list[Branch] = []

    def add(self, text: str, *, style: str = "") -> Branch:
        """Add a child and return it."""
        child = Branch(text, style=style)
        self.append(child)
        return child

    def append(self, child: Branch) -> None:
        """Add a branch with all its children."""
        self._children.append(child)

    def rendered(self, parent: Tree | None = None) -> Tree:
        from rich.text import Text
        from rich.tree import Tree

        label = Text(plain(self.text), self._style)
        tree = Tree(label) if parent is None else parent.add(label)
        for child in self._children:
            child.rendered(tree)
        return tree


def note(text: str) -> None:
    """Print a note on standard error, so that it does not mix with piped output."""
    if sys.stderr is not None:
        sys.stderr.write(plain(text) + "\n")
        sys.stderr.flush()


@contextmanager
def stages(
    title: str, *, lines_every_s: float | None = None
) -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar for work in named stages.

    Args:
        lines_every_s: without a terminal, print a line of progress at this interval, in seconds;
            None: print nothing.

    Yields:
        A function to call with the name of a stage, the units done, and their total.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield _line_progress(title, lines_every_s)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(file=sys.stderr, markup=False)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}", markup=False),
        TimeRemainingColumn(compact=True),
        # Last, so that the bar does not move when the length of the name changes.
        TextColumn("{task.fields[stage]}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(plain(title), stage="", rate="")
        pace = _Pace()
        yield lambda stage, done, total: bar.update(
            task,
            stage=plain(stage)[:STAGE_CHARS],
            rate=pace.rate(done),
            completed=done,
            total=total,
        )


@contextmanager
def progress(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar; yield a function of the number of steps done since its last call."""
    done = 0
    with stages(title) as advance:

        def more(steps: int) -> None:
            nonlocal done
            done += steps
            advance("", done, total)

        yield more


def _line_progress(title: str, every_s: float | None) -> Callable[[str, int, int], None]:
    last = time.monotonic()
    pace = _Pace()

    def told(stage: str, done: int, total: int) -> None:
        nonlocal last
        if every_s is not None and time.monotonic() - last >= every_s:
            last = time.monotonic()
            speed = ", ".join(item for item in (pace.rate(done), pace.left(done, total)) if item)
            note(plain(f"{title}: {done} of {total}{speed and f' ({speed})'}, {stage}"))

    return told


class _Pace:
    """The speed of some work since its beginning."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def rate(self, done: int) -> str:
        """Return the rate per second as text; empty while it is unknown."""
        seconds = time.monotonic() - self._began
        if not done or seconds < 1:
            return ""
        rate = done / seconds
        return f"{rate:.0f}/s" if rate >= 10 else f"{rate:.1f}/s"

    def left(self, done: int, total: int) -> str:
        """Return the time left as text; empty while it is unknown."""
        seconds = time.monotonic() - self._began
        if not 0 < done < total or seconds < 1:
            return ""
        minutes, rest = divmod(round(seconds * (total - done) / done), 60)
        hours, minutes = divmod(minutes, 60)
        if hours:
            return f"{hours} h {minutes} min left"
        return f"{minutes} min {rest} s left" if minutes else f"{rest} s left"


def _width() -> int | None:
    """Return the width of the output in characters; None: rich measures the terminal."""
    if sys.stdout is not None and sys.stdout.isatty():
        return None
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and 20 <= int(columns) <= 10_000 else PIPED_WIDTH
