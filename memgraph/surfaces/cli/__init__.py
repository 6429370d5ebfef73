"""The command line ``memgraph``, whose commands are imported when they are used."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from collections.abc import Sequence

# The number of objects created before garbage is collected: most are made by imports, and live on.
# A recall makes 220,000.
_GARBAGE_THRESHOLD = 300_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code: 0 done, 1 refused or failed, 2 wrong usage."""
    # Garbage collections during imports would take a tenth of a command's start.
    gc.set_threshold(_GARBAGE_THRESHOLD)
    from memgraph.surfaces.cli.app import run

    return run(arguments)


def run_and_exit() -> int:
    """Run the command line of this process, and exit without freeing objects one by one.

    Freeing them takes a fifth of a short command. Returns the exit code if other threads still run,
    or if the output cannot be flushed; then the interpreter exits as usual.
    """
    code = main()
    if threading.active_count() > 1:
        return code
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):  # a closed pipe, a closed stream
        return code
    os._exit(code)
