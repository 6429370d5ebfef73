"""Make text safe for a terminal, and print it. Only this module imports rich."""

from __future__ import annotations

import json
import os
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

STAGE_CHARS = 40
LINES_EVERY_S = 5.0
# In a pipe or a file nothing is wrapped, unless COLUMNS is set.
_UNWRAPPED_WIDTH = 100_000
# A table in a pipe is as wide as this.
_TABLE_WIDTH = 120
_GAP = 3
# A wrapped column is at least as wide as this.
_MIN_WRAPPED = 6

# Joiners that some scripts and emoji need, and that cannot reorder or hide text.
_HARMLESS_FORMAT = frozenset("\u200c\u200d\u00ad")
_UNSAFE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))


def plain(text: str, *, keep_lines: bool = False) -> str:
    """Return ``text`` with control, format and surrogate characters replaced by visible escapes.

    A terminal obeys escape sequences, and right-to-left overrides can disguise a line. Here they
    become visible: ESC is shown as ``\\x1b``.

    Args:
        keep_lines: keep line feeds; otherwise they become spaces.
    """
    line_break = "\n" if keep_lines else " "
    return "".join(line_break if item == "\n" else _escaped(item) for item in text.expandtabs(4))


def counted(number: int, text: str, many: str | None = None) -> str:
    """Return a number with its noun, such as ``1 time`` or ``2 times``.

    Args:
        many: the plural, if it is not ``text`` with an s.
    """
    return f"{number} {text if number == 1 else many or text + 's'}"


def json_line(value: Any, *, ascii_only: bool = False) -> str:
    """Return one line of JSON with characters that a terminal would obey as ``\\u`` escapes.

    Args:
        ascii_only: escape all characters outside of ASCII, too.
    """
    text = json.dumps(value, ensure_ascii=ascii_only, allow_nan=False)
    if text.isascii() and text.isprintable():
        return text
    return "".join(item if _is_safe(item) else _json_escape(item) for item in text)


@lru_cache(maxsize=4096)
def _is_safe(char: str) -> bool:
    return char in _HARMLESS_FORMAT or unicodedata.category(char) not in _UNSAFE


def _escaped(char: str) -> str:
    if char == " " or _is_safe(char):
        return char
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


class Screen:
    """Prints to standard output for a person. All text is passed through ``plain``."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console: Console = Console(
            file=sys.stdout, markup=False, emoji=False, highlight=False, width=_width()
        )

    def line(self, text: str = "", *, style: str | None = None) -> None:
        """Print one line. The terminal wraps a long one, so that it can be copied as one line."""
        self._console.print(plain(text), style=style, soft_wrap=True)

    def heading(self, text: str) -> None:
        self.line(text, style="bold")

    def block(self, text: str, *, indent: int = 0, style: str = "") -> None:
        """Print text of one or more lines, each wrapped at words and indented."""
        from rich.text import Text

        width = max(self._console.width - indent, 20)
        for line in Text(plain(text, keep_lines=True)).wrap(self._console, width):
            self._console.print(" " * indent + line.plain.rstrip(), style=style, soft_wrap=True)

    def raw_lines(self, text: str) -> None:
        """Print text of several lines unchanged, without terminal control characters."""
        self._console.print(plain(text, keep_lines=True), soft_wrap=True, end="")

    def fields(self, rows: Sequence[tuple[str, str]], *, indent: int = 0) -> None:
        """Print names and values, one pair per line."""
        width = max((len(name) for name, _ in rows), default=0) + 2
        for name, value in rows:
            self.line(" " * indent + name.ljust(width) + value)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table without its empty columns; the first column is never wrapped.

        In a pipe it is at most 120 characters wide, unless COLUMNS is set. What is wider is
        wrapped, the widest columns first; if even that is too wide, each row is printed as fields.
        """
        from rich.box import SIMPLE_HEAD
        from rich.cells import cell_len
        from rich.table import Table
        from rich.text import Text

        cells = [[plain(cell) for cell in row] for row in rows]
        filled = [at for at in range(len(columns)) if at == 0 or any(row[at] for row in cells)]
        width = _TABLE_WIDTH if self._console.width == _UNWRAPPED_WIDTH else self._console.width
        widths = [max(cell_len(row[at]) for row in (columns, *cells)) for at in filled]
        wrapped = (min(one, _MIN_WRAPPED) for one in widths[1:])
        if sum(wrapped, widths[0]) + _GAP * (len(filled) - 1) > width:
            for row in cells:
                self.fields([(columns[at], row[at]) for at in filled if row[at]])
                self.line()
            return
        table = Table(
            box=SIMPLE_HEAD,
            pad_edge=False,
            show_edge=False,
            header_style="bold",
            padding=(0, 2, 0, 0),
        )
        for at in filled:
            table.add_column(Text(columns[at]), overflow="fold", no_wrap=at == 0)
        for row in cells:
            table.add_row(*(Text(row[at]) for at in filled))
        with self._console.capture() as printed:
            self._console.print(table, width=width)
        for line in printed.get().splitlines():
            self._console.file.write(line.rstrip() + "\n")


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
        last = time.monotonic()

        def line(stage: str, done: int, total: int) -> None:
            nonlocal last
            if lines_every_s is not None and time.monotonic() - last >= lines_every_s:
                last = time.monotonic()
                note(f"{title}: {done} of {total}, {stage}")

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(file=sys.stderr, markup=False)
    text = "{task.description}", "{task.fields[stage]}"
    columns = (TextColumn(text[0], markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TextColumn(text[1], markup=False), console=console, transient=True
    ) as bar:
        task = bar.add_task(plain(title), stage="")
        yield lambda stage, done, total: bar.update(
            task, stage=plain(stage)[:STAGE_CHARS], completed=done, total=total
        )


def _width() -> int | None:
    """Return the width of the output in characters; None: rich measures the terminal."""
    if sys.stdout is not None and sys.stdout.isatty():
        return None
    columns = os.environ.get("COLUMNS", "")
    return (
        int(columns) if columns.isdecimal() and 20 <= int(columns) <= 10_000 else _UNWRAPPED_WIDTH
    )
