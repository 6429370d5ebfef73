"""The source lines and turns that memories were read from, for readers who may see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from memgraph.model.access import Permission

if TYPE_CHECKING:
    from memgraph.model.influence import SourceLines
    from memgraph.surfaces.web.visiting import Visit


def lines_of(visit: Visit, *memory_ids: str) -> Mapping[str, SourceLines]:
    """Return the lines by memory id; empty for a principal who may not audit."""
    if not visit.may(Permission.AUDIT):
        return {}
    orc = visit.enter(Permission.AUDIT)
    return {each: orc.source_lines(each) for each in memory_ids}
