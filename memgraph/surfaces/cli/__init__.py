"""The command line ``memgraph``, whose commands are imported when they are used."""

from __future__ import annotations

import gc
from collections.abc import Sequence

# The number of objects created before garbage is collected: most are made by imports, and live on.
_GARBAGE_THRESHOLD = 100_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code: 0 done, 1 refused or failed, 2 wrong usage."""
    # Garbage collections during imports would take a tenth of a command's start.
    gc.set_threshold(_GARBAGE_THRESHOLD)
    from memgraph.surfaces.cli.app import run

    return run(arguments)
