"""``memgraph`` for many command lines: each is a process of its own, forked from a loaded one.

Loading takes nearly all of a short command's time. What is under test here is what commands do; how
they start is tested elsewhere, with the installed program.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = str(Path(__file__).parent)
COLD = ("serve", "mcp", "worker")
"""Commands that live on and are sent signals: they are started as they are installed."""
READY = b"ready\n"
ADDRESS = "command.socket"
"""In the folder of the block, by its name alone: a whole path may be too long for a socket."""
LARGEST = 1 << 20
STREAMS = (0, 1, 2)
SHIM = f"""#!{sys.executable} -IS
import json, os, socket, sys
words = sys.argv[1:]
if words[:1] and words[0] in {COLD!r}:
    os.execv({sys.executable!r}, [{sys.executable!r}, {{program!r}}, *words])
told = json.dumps([words, os.getcwd(), dict(os.environ)]).encode()
os.chdir({{folder!r}})
with socket.socket(socket.AF_UNIX) as line:
    line.connect({ADDRESS!r})
    socket.send_fds(line, [told], {STREAMS!r})
    line.shutdown(socket.SHUT_WR)
    code = line.recv(1)
sys.exit(code[0] if code else "the command died")
"""


@contextmanager
def warm_command(folder: Path) -> Iterator[Path]:
    """Gives a folder for ``PATH`` in which ``memgraph`` is, for the time of the block."""
    program = Path(sys.executable).with_name("memgraph")
    shim = folder / "bin" / "memgraph"
    shim.parent.mkdir(parents=True)
    shim.write_text(SHIM.format(program=str(program), folder=str(folder)), encoding="utf-8")
    shim.chmod(0o700)
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
            yield shim.parent
        finally:
            process.kill()


def serve() -> None:
    """Runs in the loaded process: fork for each command line that is sent."""
    import memgraph.operations.orchestrator  # noqa: F401  # what nearly every command needs
    from memgraph.providers import pair_reader
    from memgraph.providers.local import LocalEmbedding
    from memgraph.surfaces.cli.app import command_names, load_command

    LocalEmbedding().embed(["Hello."])
    pair_reader._model(pair_reader.DIRECTORY)
    for name in command_names():
        load_command(name)
    sys.path.remove(HERE)
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
    """Be the command that was asked for, tell its exit code and end."""
    from memgraph.surfaces.cli import main

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    told, streams, _, _ = socket.recv_fds(line, LARGEST, len(STREAMS))
    while more := line.recv(LARGEST):
        told += more
    for stream, place in zip(streams, STREAMS, strict=True):
        os.dup2(stream, place)
        os.close(stream)
    # Those that were made here know what they were made on.
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(place, mode, encoding="utf-8") for place, mode in zip(STREAMS, "rww", strict=True)
    )
    words, folder, environ = json.loads(told)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    sys.argv = ["memgraph", *words]
    code = main(words)
    for stream in (sys.stdout, sys.stderr):
        if not stream.closed:
            stream.flush()
    line.send(bytes([code]))
    os._exit(0)
