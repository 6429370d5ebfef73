"""What a person may do next where something that was named is not there."""

from __future__ import annotations

from typing import Final

from memgraph.errors import MemgraphError, NotFound

LISTS: Final = {
    "memory_id": "list",
    "edge_id": "contradictions",
    "session_id": "sessions",
    "receipt_id": "receipt list",
    "bulletin_id": "receipt bulletins",
    "workflow_run_id": "receipt list",
}
"""The command that lists what could have been named, by what the error names."""
NAMES: Final = {
    "source": "source list",
    "source distrust": "source trusted",
    "retract": "source list",
    "entity": "entities list",
    "entities": "entities list",
    "erase": "entities list",
}
"""The same of an error that has but a ``name``, by the command or its first word."""


def next_step(error: MemgraphError, command: str, orchestrator: str | None) -> str | None:
    """A command line that lists what there is; None: none is known.

    Args:
        command: the one that failed, such as ``source show``.
        orchestrator: the one that it named.
    """
    if not isinstance(error, NotFound) or orchestrator is None:
        return None
    found = next((LISTS[each] for each in error.details if each in LISTS), None)
    if found is None and "name" in error.details:
        found = NAMES.get(command) or NAMES.get(command.partition(" ")[0])
    return None if found is None else f"memgraph {found} {orchestrator}"
