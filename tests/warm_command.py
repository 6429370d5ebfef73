"""``memgraph`` and ``python`` for lines of a shell: processes that are forked from a loaded one.

Loading takes nearly all of a short command's time. What is under test here is what commands do; how
they start is tested elsewhere, with the installed program.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from programs import STREAMS, become, execute

HERE = str(Path(__file__).parent)
READY = b"ready\n"
ADDRESS = "command.socket"
"""In the folder of the block, by its name alone: a whole path may be too long for a socket."""
LARGEST = 1 << 20
SHIM = f"""#!{sys.executable} -IS
import json, os, signal, socket, sys
told = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
os.chdir({{folder!r}})
with socket.socket(socket.AF_UNIX) as line:
    line.connect({ADDRESS!r})
    socket.send_fds(line, [told], {STREAMS!r})
    line.shutdown(socket.SHUT_WR)
    number = int(line.recv(10))
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda sent, _frame: os.kill(number, sent))
    code = line.recv(1)
sys.exit(code[0] if code else "the program died")
"""
"""The process that was forked tells its number, in ten digits, and at its end its exit code."""


@contextmanager
def warm_command(folder: Path) -> Iterator[Path]:
    """Gives a folder for ``PATH`` with ``memgraph`` and ``python``, for the time of the block."""
    programs = folder / "bin"
    programs.mkdir(parents=True)
    for name in ("memgraph", "python"):
        (programs / name).write_text(SHIM.format(folder=str(folder)), encoding="utf-8")
        (programs / name).chmod(0o700)
    code = f"import sys; sys.path.append({HERE!r}); import warm_command; warm_command.serve()"
    with subprocess.Popen(
        # Nothing is loaded from where a command runs, as by the installed program.
        [sys.executable, "-P", "-c", code],
        cwd=folder,
        stdout=subprocess.PIPE,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == READY
            yield programs
        finally:
            process.kill()


def serve() -> None:
    """Runs in the loaded process: fork for each command line that is sent."""
    import mcp  # noqa: F401  # what the examples of agents need
    import processes_preloaded  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that are forked
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(ADDRESS)
        door.listen()
        os.write(1, READY)
        while True:
            line, _ = door.accept()
            if os.fork() == 0:
                door.close()
                _run(line)
            line.close()


def _run(line: socket.socket) -> None:
    """Be the program that was asked for, tell its exit code and end."""
    from memgraph.surfaces.cli import main

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    told, streams, _, _ = socket.recv_fds(line, LARGEST, len(STREAMS))
    while more := line.recv(LARGEST):
        told += more
    line.send(b"%10d" % os.getpid())
    words, folder, environ = json.loads(told)
    become(environ, folder, *streams)
    code = 1
    try:
        if Path(words[0]).name == "memgraph":
            sys.argv = words
            code = main(words[1:])
        else:
            execute(words[1:])
            code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - as an interpreter does at the end of a program
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            if not stream.closed:
                stream.flush()
        line.send(bytes([code]))
        os._exit(code)
