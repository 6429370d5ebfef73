"""Keeping what the memory handed out, so that it is known when it comes back."""

from __future__ import annotations

from collections.abc import Sequence

from memgraph.consolidation.echo_filter import EchoFilter
from memgraph.consolidation.turns import Turn
from memgraph.service.opened import Opened


def echo_filter(opened: Opened, turns: Sequence[Turn] = ()) -> EchoFilter:
    """The filter for a page of turns; what this process handed out until now is written first.

    Raises:
        StorageError: nothing was decided.
    """
    opened.receipts.flush()
    return EchoFilter(opened.database, turns)
