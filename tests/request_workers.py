"""A server in a process of its own that dies after a write and before its answer, in tests."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from serving_worlds import serving

from memgraph.surfaces.http.once import Turn


async def die(_turn: Turn, _status: int, _body: bytes) -> None:
    """In place of ``Turn.keep``: the write is durable, and nobody was told."""
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Argument: the root. Prints its address, then serves until it is killed."""
    Turn.keep = die  # type: ignore[method-assign, assignment] # what the test is about
    with serving(Path(sys.argv[1]), keyless=True) as served:
        served.orchestrator()
        sys.stdout.write(f"{served.url}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
