"""The command line: ``memgraph``. Commands load when they are used."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; gives the exit code: 0 done, 1 the domain says no, 2 wrong usage."""
    from memgraph.surfaces.cli.app import run

    return run(arguments)
