"""How long a process takes, median and best: ``python -m benchmarks.start [rounds]``.

Everything is measured on this interpreter, in a root of its own, with bytecode and the files in the
cache, as an installed package has it. ``memgraph bench latency`` measures starts on filled roots.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.latency_process import MAIN, environment_of

MEASURED = {
    "python -c pass": ["-c", "pass"],
    "import memgraph": ["-c", "import memgraph"],
    "memgraph --help": ["-c", MAIN, "--help"],
    "memgraph recall --help": ["-c", MAIN, "recall", "--help"],
    "memgraph list": ["-c", MAIN, "list", "bench"],
    "memgraph recall": ["-c", MAIN, "recall", "bench", "when does the shop close?"],
    "memgraph remember": ["-c", MAIN, "remember", "bench", "The shop sells bread."],
}


def seconds(arguments: list[str], environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments], env=environment, stdout=subprocess.DEVNULL, check=True
    )
    return time.perf_counter() - start


def measure(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as root:
        environment = environment_of(Path(root) / "root")
        for setup in (["init", "bench"], ["remember", "bench", "The shop closes at 20:00."]):
            seconds(["-c", MAIN, *setup], environment)
        for name, arguments in MEASURED.items():
            seconds(arguments, environment)
            took = [seconds(arguments, environment) for _ in range(rounds)]
            print(f"{name:<24} {statistics.median(took):6.3f} s  best {min(took):6.3f} s")


if __name__ == "__main__":
    measure(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
