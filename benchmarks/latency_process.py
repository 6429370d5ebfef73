"""What processes of their own take: how long they start, and how much a server answers."""

from __future__ import annotations

import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import cache_from_source, find_spec
from pathlib import Path
from typing import Any, Final

import memgraph
from benchmarks.latency_load import NAME
from benchmarks.synthetic import Corpus
from benchmarks.timing import Tell
from memgraph.errors import BenchFailed

STARTS: Final = 5
CLIENTS: Final = 4
RECALLS_PER_ROUND, WRITES_PER_ROUND = 4, 10
START_S: Final = 60.0
MAIN: Final = "import sys; from memgraph.surfaces.cli import run_and_exit; sys.exit(run_and_exit())"
_FIRST_RECALL: Final = """
import sys, time
from memgraph import MemoryService
with MemoryService(sys.argv[1], environ={}, background=False) as service:
    memory = service.orchestrator(sys.argv[2])
    start = time.perf_counter()
    memory.recall(sys.argv[3])
    print(time.perf_counter() - start)
"""


def measure(root: Path, size: int, corpus: Corpus, rounds: int, tell: Tell) -> dict[str, Any]:
    """Measure processes over a loaded root, which the server's writes add to.

    Returns:
        Under ``start``, medians in seconds: ``import``, the commands ``list`` and
        ``recall_command``, ``first_recall``, ``serve`` (until the first answer); under ``http``:
        ``recalls_per_s``, ``writes_per_s`` of one server process asked by `CLIENTS` threads of this
        one, and ``recalls_two``, ``writes_two``: how many times as many two processes answer. Those
        of a server are None without the extra ``server``.

    Raises:
        BenchFailed: a process ended without an answer.
    """
    environment = environment_of(root)
    serves = find_spec("uvicorn") is not None and find_spec("fastapi") is not None
    question = corpus.question(0, size)
    commands = {"list": ["list", NAME], "recall_command": ["recall", NAME, question]}
    taken: dict[str, list[float]] = {
        name: [] for name in ("import", *commands, "first_recall", "serve")
    }
    starts = min(STARTS, max(rounds // 20, 1))
    # The first process of a checkout writes the bytecode that the others read.
    _output([MAIN, *commands["recall_command"]], environment)
    for done in range(starts):
        tell("starting processes", done, starts)
        taken["import"].append(_seconds(["from memgraph import MemoryService"], environment))
        for name, words in commands.items():
            taken[name].append(_seconds([MAIN, *words], environment))
        answer = _output([_FIRST_RECALL, str(root), NAME, question], environment)
        taken["first_recall"].append(float(answer))
        if serves:
            with _server(environment) as (_, started):
                taken["serve"].append(started)
    http = dict.fromkeys(("recalls_per_s", "writes_per_s", "recalls_two", "writes_two"))
    if serves:
        questions = [corpus.question(at, size) for at in range(RECALLS_PER_ROUND * rounds)]
        recalls = [("recall", {"query": each}) for each in questions]
        rates = []
        for count in (1, 2):
            writes = [
                ("memories", {"content": f"{count}, {at}: {corpus.text(at)}", "kind": "episode"})
                for at in range(WRITES_PER_ROUND * rounds)
            ]
            with _server(environment, "--processes", str(count)) as (port, _):
                _rate(port, recalls[: CLIENTS * count])
                tell(f"HTTP, {count} processes", count - 1, 2)
                rates.append((_rate(port, recalls), _rate(port, writes)))
        two = [round(second / first, 2) for first, second in zip(*rates, strict=True)]
        http = dict(zip(http, (*rates[0], *two), strict=True))
    medians = {name: round(statistics.median(each), 3) for name, each in taken.items() if each}
    return {"start": {"serve": None, **medians}, "http": http}


def environment_of(root: Path) -> dict[str, str]:
    """Return the environment of a process on a root, with bytecode as an installed package has it.

    Bytecode that the folders of the packages lack is written beside the root.
    """
    kept = {name: each for name, each in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    if not Path(cache_from_source(memgraph.__file__)).exists():
        kept["PYTHONPYCACHEPREFIX"] = str(root.with_name(root.name + "-bytecode"))
    return {**kept, "MEMGRAPH_ROOT": str(root)}


def _seconds(arguments: Sequence[str], environment: dict[str, str]) -> float:
    start = time.perf_counter()
    _output(arguments, environment)
    return time.perf_counter() - start


def _output(arguments: Sequence[str], environment: dict[str, str]) -> str:
    """What a process of this interpreter prints; the first argument is its program."""
    try:
        return subprocess.run(
            [sys.executable, "-c", *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout
    except subprocess.CalledProcessError as error:
        raise BenchFailed(f"a measured process ended with {error.returncode}") from None


@contextmanager
def _server(environment: dict[str, str], *options: str) -> Iterator[tuple[int, float]]:
    """A server at a free loopback port: the port, and the seconds until its first answer."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    settings = {
        "MEMGRAPH_MEMORY__SERVER__PORT": str(port),
        "MEMGRAPH_MEMORY__SERVER__ALLOW_WITHOUT_KEY": "true",
        # As in the load: comparing what one measurement wrote would slow the next.
        "MEMGRAPH_MEMORY__COMPARISON__READER": "none",
    }
    start = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, "serve", *options],
        env={**environment, **settings},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            while not _answers(port):
                if process.poll() is not None or time.perf_counter() - start > START_S:
                    raise BenchFailed("the server did not answer")
                time.sleep(0.01)
            yield port, time.perf_counter() - start
        finally:
            process.terminate()


def _answers(port: int) -> bool:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=START_S)
    try:
        client.request("GET", "/health")
        client.getresponse().read()
    except OSError:
        return False
    finally:
        client.close()
    return True


def _rate(port: int, asked: Sequence[tuple[str, dict[str, Any]]]) -> float:
    """How many requests a second are answered, sent by `CLIENTS` at once.

    Raises:
        BenchFailed: one was refused.
    """

    def ask(share: Sequence[tuple[str, dict[str, Any]]]) -> None:
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=START_S)
        for path, body in share:
            client.request(
                "POST",
                f"/v1/orchestrators/{NAME}/{path}",
                json.dumps(body),
                {"Content-Type": "application/json"},
            )
            answer = client.getresponse()
            answer.read()
            if answer.status >= 300:
                raise BenchFailed(f"the server answered {answer.status}")
        client.close()

    start = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as threads:
        for done in [threads.submit(ask, asked[at::CLIENTS]) for at in range(CLIENTS)]:
            done.result()
    return round(len(asked) / (time.perf_counter() - start), 1)
