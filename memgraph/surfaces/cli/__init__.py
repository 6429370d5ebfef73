"""The command line: ``memgraph``. Commands load when they are used."""

from __future__ import annotations

import gc
from collections.abc import Sequence

# Objects made before garbage is looked for: loading makes most of them, and they stay.
_GARBAGE_THRESHOLD = 100_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; gives the exit code: 0 done, 1 the domain says no, 2 wrong usage."""
    # Looking through what is being loaded would take a tenth of a command's start.
    gc.set_threshold(_GARBAGE_THRESHOLD)
    from memgraph.surfaces.cli.app import run

    return run(arguments)
