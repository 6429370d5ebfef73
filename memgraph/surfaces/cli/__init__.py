"""The command line: ``memgraph``. Commands load when they are used."""

from __future__ import annotations

import gc
from collections.abc import Sequence

# Objects made before garbage is looked for: loading makes most of them, and they stay.
_GARBAGE_THRESHOLD = 100_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; return the exit code: 0 done, 1 refused or failed, 2 wrong usage."""
    # Collecting while modules load would take a tenth of a command's start.
    gc.set_threshold(_GARBAGE_THRESHOLD)
    from memgraph.surfaces.cli.app import run

    return run(arguments)
