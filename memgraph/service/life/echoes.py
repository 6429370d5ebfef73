"""Keeping what the memory handed out, so that it is known when it comes back."""

from __future__ import annotations

from collections.abc import Sequence

from memgraph.clock import MS_PER_DAY
from memgraph.consolidation.echo_filter import EchoFilter, Remainder
from memgraph.consolidation.turns import Turn
from memgraph.policy.echo import cited_ids
from memgraph.service.opened import Opened
from memgraph.storage import echo_lines

# Who keeps a text at hand for longer without being told it anew is not a conversation any more.
LINES_KEPT_MS = 365 * MS_PER_DAY


def echo_filter(opened: Opened, turns: Sequence[Turn] = ()) -> EchoFilter:
    """The filter for a page of turns; what this process handed out until now is written first.

    Raises:
        StorageError: nothing was decided.
    """
    opened.receipts.flush()
    return EchoFilter(opened.database, turns)


def record_handed_out(opened: Opened, lines: Sequence[str], *, at_ms: int) -> bool:
    """Note lines that were handed out otherwise than by a recall or a bulletin.

    They are kept in memory and written with the receipts, off the path of who asks; whether there
    is enough to be written.
    """
    return opened.receipts.add_text("\n".join(lines), at_ms)


def without_own_output(opened: Opened, text: str) -> Remainder:
    """The text of a file without what this memory wrote, line numbers unchanged.

    Raises:
        StorageError: nothing was decided.
    """
    if not cited_ids(text):
        return Remainder(text)
    return echo_filter(opened).without_marked(text)


def forget_old_lines(opened: Opened, *, now_ms: int) -> int:
    """Remove lines that nothing handed out for ``LINES_KEPT_MS``; gives how many.

    What an agent repeats later still is no source while a memory that says it stands.
    """
    with opened.database.write(durable=False) as connection:
        return echo_lines.forget(connection, now_ms - LINES_KEPT_MS)
