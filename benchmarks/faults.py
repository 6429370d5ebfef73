"""``python -m benchmarks.faults``: what real processes leave behind, as a table.

Every row has a root of its own, on SQLite and, with ``--storage``, on PostgreSQL at the same time.
Most start processes, kill them (SIGKILL) while they work, and compare what is left with what they
had acknowledged, or with a store that nobody disturbed. One swaps files under ingest, one sends a
server what its OpenAPI document allows and forbids; the others are in ``benchmarks.attacks``. The
command ends within about five minutes. The exit code is 1 where anything was wrong.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

from ingest.pipeline import IngestPipeline
from ingest.safe_files import FileVanished, StillBeingWritten, open_directory, read_safely
from memgraph import MemoryService
from memgraph.errors import Conflict, IngestRejected

NAME = "orc"
WRITERS = 4
TURNS = (
    "Fact: my office is on the third floor.",
    "Mira moved to Lisbon in May.",
    "Fact: the ferry leaves at nine on Fridays.",
    "Decision: PostgreSQL for the ledger.",
    "TODO: renew the passport.",
)

CONSOLIDATE = """
import sys
from memgraph import MemoryService
with MemoryService(sys.argv[1], environ={}, background=False) as service:
    orc = service.orchestrator("orc")
    print("begun", flush=True)
    orc.jobs.consolidate()
"""
WORK = """
import random, sys
from ingest.pipeline import IngestPipeline
from memgraph import MemoryService
random.seed(int(sys.argv[2]))
def secret():
    return f"{random.getrandbits(64):016x}"
def report(*words):
    print(*words, flush=True)
with MemoryService(sys.argv[1], environ={}, background=False) as service:
    orc = service.orchestrator("orc", create=True)
    known = []
    for number in range(1_000_000):
        known.append(orc.remember(f"Crate {number} of {sys.argv[2]} holds {(word := secret())}."))
        report("stored", known[-1], word)
        if number % 3 == 2:
            orc.relate(known[-1], "RelatedTo", random.choice(known[:-1]))
            orc.recall("What do the crates hold?", top_n=5)
        if number % 5 == 4:
            report("retracting", known[0])
            orc.retract(known[0], reason="moved")
            report("retracted", known.pop(0))
        if number % 7 == 6:
            word = secret()
            draft = orc.paths.ingest / f".{word}"
            draft.write_text(f"# Lamps\\n\\nThe lamp {word} stands in the hall.\\n")
            draft.rename(draft.with_name(f"{word}.md"))
            report("dropped", word)
            IngestPipeline(orc).run()
        if number % 11 == 10:
            talk = f"talk-{sys.argv[2]}-{number}"
            content = f"Fact: my locker has the number {secret()}."
            orc.save_episode(content, session_id=talk, source_role="user")
            orc.sessions.end(talk)
            orc.jobs.consolidate(talk)
        if number % 13 == 12:
            gone = known.pop()
            report("erasing", gone)
            done = orc.erasure.erase(memory_id=gone, reason="asked for", dry_run=False)
            if not done.unfinished:
                report("erased", gone)
"""
SWAP = """
import os, random, sys
zone, outside, seed = sys.argv[1:]
random.seed(int(seed))
os.chdir(zone)
target = os.path.join(outside, "secret.md")
for number in range(10_000_000):
    name = random.choice(["a.md", "b.md", "sub/a.md"])
    fresh = f".{number}"
    kind = number % 4
    try:
        if kind == 0:
            with open(fresh, "w") as file:
                file.write(f"The lamp {number} stands in the hall.")
        elif kind == 1:
            os.symlink(target, fresh)
        elif kind == 2:
            os.link(target, fresh)
        elif os.path.islink("sub"):
            os.unlink("sub")
            os.rename(".sub", "sub")
            continue
        else:
            os.rename("sub", ".sub")
            os.symlink(outside, "sub")
            continue
        # Not through the link: what is there is not to be replaced by this process itself.
        os.rename(fresh, "c.md" if name[:4] == "sub/" and os.path.islink("sub") else name)
    except OSError:
        # A file is gone, or a folder is not: it was ingested, or stays beside its new self.
        if not os.path.islink("sub"):
            try:
                os.makedirs("sub", exist_ok=True)
            except FileExistsError:
                pass  # removed by the ingest just now, as it was empty
    finally:
        if os.path.lexists(fresh):
            os.unlink(fresh)  # a second name of the same file is not renamed
        if number % 100 == 0:
            print(number, flush=True)
"""
REPORTED = ("stored", "retracting", "retracted", "dropped", "erasing", "erased")
"""What a worker prints, with an id or a word, before or after it did it."""
SERVE = "import sys; from memgraph.surfaces.cli import main; sys.exit(main())"
SCHEMATHESIS = "import sys; from schemathesis.cli import schemathesis; schemathesis()"
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)


class Row(NamedTuple):
    """What one fault came to; ``wrong`` 0: nothing was lost, doubled or changed."""

    fault: str
    times: int
    checked: str
    wrong: int

    @property
    def cells(self) -> str:
        return f"{self.times:,} | {self.wrong} | {self.checked} |"


Attack = Callable[[Path, float], Row | None]
"""Takes an empty folder and about how many seconds to go on; None: not on this engine."""
BOUND_S = 300.0
REQUESTS_S = 10
"""The seconds in which every operation of the OpenAPI document is asked once or more."""
STORAGE: dict[Path, str] = {}
"""The URL of the server that stores the roots in a folder; none: they are stored in files."""
_databases: list[tuple[str, str]] = []


def main() -> int:
    """Run what the command line asks for, and print the table."""
    from benchmarks import attacks

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each row, at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--storage", default="", help="the URL of a PostgreSQL server, as well")
    parser.add_argument("--only", default="", help="functions of rows, separated by commas")
    chosen = parser.parse_args()
    random.seed(chosen.seed)
    begun = time.monotonic()
    runs: tuple[Attack, ...] = (
        consolidation_killed,
        copied_and_restored,
        load_killed,
        paths_swapped,
        asked_by_document,
        *attacks.ROWS,
    )
    runs = tuple(run for run in runs if not chosen.only or run.__name__ in chosen.only.split(","))
    engines = ["", chosen.storage] if chosen.storage else [""]
    if chosen.storage:
        # SQLAlchemy's packages import one another: two threads may not do so at the same time.
        import alembic.command  # noqa: F401

        from memgraph.store.postgres import stores  # noqa: F401
    names = ("SQLite", "PostgreSQL")[: len(engines)]
    print(f"| fault |{''.join(f' {name}: times | wrong | checked |' for name in names)}")
    print(f"|---|{'---|---|---|' * len(engines)}", flush=True)
    passed = 0
    with ThreadPoolExecutor(len(engines)) as pool:
        for place, run in enumerate(runs):
            # Each row has processes to start as well.
            left = (begun + BOUND_S - time.monotonic()) / (len(runs) - place) / 3
            if left <= 0:
                print(f"| {run.__name__} | not run: no time is left |", flush=True)
                continue
            seconds = max(0.5, min(chosen.seconds, left))
            rows = list(pool.map(partial(_row, run, seconds), engines))
            name = next(row.fault for row in rows if row is not None)
            cells = ("– | – | – |" if row is None else row.cells for row in rows)
            print(f"| {name} | {' '.join(cells)}", flush=True)
            passed += not any(row.wrong for row in rows if row is not None)
    for server, name in _databases:
        _execute(server, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    took = time.monotonic() - begun
    print(f"{passed} of {len(runs)} rows pass, in {took:.0f} s", file=sys.stderr)
    return int(passed < len(runs))


def _row(run: Attack, seconds: float, url: str) -> Row | None:
    with tempfile.TemporaryDirectory(prefix="memgraph-faults-", ignore_cleanup_errors=True) as name:
        if url:
            STORAGE[Path(name)] = url
        try:
            return run(Path(name), seconds)
        except Exception as error:  # noqa: BLE001  whatever it is, this row has failed
            traceback.print_exc()
            return Row(run.__name__.replace("_", " "), 0, f"failed: {type(error).__name__}", 1)


def is_on_server(folder: Path) -> bool:
    """Return True if the roots in a folder are stored on a server."""
    return folder in STORAGE


def prepare(root: Path) -> Path:
    """Make a root that is stored in a new database if its folder's roots are on a server."""
    config, server = root / "memgraph.toml", STORAGE.get(root.parent)
    if server is not None and not config.exists():
        from memgraph.store import postgres

        name = f"memgraph_faults_{uuid.uuid4().hex}"
        _execute(server, f"CREATE DATABASE {name}")
        _databases.append((server, name))
        url = postgres.checked_url(server).set(database=name).render_as_string()
        root.mkdir(parents=True, exist_ok=True)
        config.write_text(f"[memory.storage]\nurl = {json.dumps(url)}\n")
    return root


def _execute(server: str, statement: str) -> None:
    from memgraph.store import postgres

    with closing(postgres.connect(postgres.checked_url(server))) as connection:
        connection.execute(statement.encode())


def consolidation_killed(folder: Path, seconds: float) -> Row:
    """Kill a consolidation again and again; compare its facts with those of an undisturbed one."""
    roots = [folder / "calm", folder / "killed"]
    for root in roots:
        with service_of(root) as service:
            orc = service.orchestrator(NAME, create=True)
            for talk in range(6):
                for turn in TURNS:
                    content = f"{turn[:-1]}, as of week {talk}."
                    orc.save_episode(content, session_id=f"talk-{talk}", source_role="user")
                orc.sessions.end(f"talk-{talk}")
    finish(start(CONSOLIDATE, roots[0]))
    kills = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        process = start(CONSOLIDATE, roots[1])
        assert process.stdout is not None
        process.stdout.readline()
        # The first one at once: all is done within half a second where nothing else runs.
        time.sleep(random.uniform(0.0, 0.5) if kills else 0.0)
        if process.poll() is not None:
            finish(process)
            break
        kills += kill(process)
    finish(start(CONSOLIDATE, roots[1]))
    facts = [sorted(texts_of(root)) for root in roots]
    return Row(
        "consolidation, SIGKILL",
        kills,
        f"{len(facts[0])} memories as of an undisturbed run, verify",
        sum(one != other for one, other in zip(*facts, strict=False))
        + abs(len(facts[0]) - len(facts[1]))
        + findings(roots[1]),
    )


def copied_and_restored(folder: Path, seconds: float) -> Row:
    """Back up and restore while others write, and again when nobody does.

    The first copy holds what was acknowledged before it was begun; the exports of the second one
    and of its source are the same.
    """
    root, rounds, checked, wrong = folder / "root", 0, 0, 0
    end = time.monotonic() + seconds
    while rounds == 0 or time.monotonic() < end:
        with _work(root, rounds) as worker:
            wait_for(worker, 5)
            known = _reported([worker])["stored"].keys()
            copy = backed_up(root, folder / f"{rounds}-beside.db")
            wrong += worker.has_failed
        _settle(root, _reported([worker]))
        beside = _restored(root, copy)
        wrong += len(known - {each["memory_id"] for each in _records(beside, "memory")})
        quiet = _restored(root, backed_up(root, folder / f"{rounds}-quiet.db"))
        wrong += _digest(quiet) != _digest(root)
        wrong += findings(beside) + findings(quiet)
        checked += len(known)
        rounds += 1
    what = f"{checked:,} acknowledged writes; digest of the export as of the source; verify"
    return Row("backup and restore, with and without writers", rounds, what, wrong)


def load_killed(folder: Path, seconds: float) -> Row:
    """Let several processes write, recall, ingest, consolidate, retract and erase; kill and
    replace one after another, and look for all that they had acknowledged.
    """
    root = folder / "root"
    with service_of(root) as service:
        service.orchestrator(NAME, create=True)
    workers: list[Worker] = []
    end = time.monotonic()
    with ExitStack() as running:
        while len(workers) < WRITERS or time.monotonic() < end:
            workers.append(running.enter_context(_work(root, len(workers))))
            wait_for(workers[-1], 1)
            if len(workers) == WRITERS:
                end = time.monotonic() + seconds
            if len(workers) >= WRITERS and time.monotonic() < end:
                time.sleep(random.uniform(0.5, 2.0))
                random.choice([each for each in workers if not each.is_over]).kill()
        kills = sum(each.is_over for each in workers)
        failed = [each for each in workers if each.has_failed]
    for each in failed:
        print(each.complaint, file=sys.stderr)
    words = _reported(workers)
    _settle(root, words)
    told = {kind: words[kind].keys() for kind in REPORTED}
    found = list(_records(root, "memory"))
    status = {each["memory_id"]: each["status"] for each in found}
    lamps = Counter(word for each in found for word in told["dropped"] if word in each["content"])
    there = told["stored"] & status.keys()
    kept = {name for name in there - told["erasing"] if status[name] != "retracted"}
    wrong = {
        "failed": len(failed),
        "lost": len(told["stored"] - status.keys()),
        "doubled": len(found) - len(status),
        "not retracted": len(told["retracted"] & kept),
        "retracted by nobody": len(there - told["erasing"] - told["retracting"] - kept),
        "files": sum(lamps[word] != 1 for word in told["dropped"]),
        "remains": len(remains(root, {words["stored"][name] for name in told["erasing"]})),
        "copy": _digest(_restored(root, backed_up(root, folder / "copy.db"))) != _digest(root),
        "findings": findings(root),
    }
    print(f"  {wrong}", file=sys.stderr)
    return Row(
        f"{WRITERS} processes write, recall, ingest, consolidate, retract, erase; SIGKILL to one",
        kills,
        f"{len(told['stored']):,} memories, {len(told['retracted'])} retracted,"
        f" {len(told['dropped'])} files, {len(told['erasing'])} erasures; digest; verify",
        sum(wrong.values()),
    )


def paths_swapped(folder: Path, seconds: float) -> Row:
    """Exchange dropped files and their folders for links while they are ingested."""
    root, outside = folder / "root", folder / "outside"
    secret = f"{random.getrandbits(64):016x}"
    outside.mkdir()
    for name in ("secret.md", "a.md"):
        (outside / name).write_text(f"The key of the safe is {secret}.")
    before = _states(outside)
    outcomes: Counter[str] = Counter()
    with service_of(root) as service:
        orc = service.orchestrator(NAME, create=True)
        zone = orc.paths.ingest
        with Worker(SWAP, folder / "swaps", zone, outside, random.getrandbits(32)) as swapper:
            wait_for(swapper, 1)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                outcomes.update(each.outcome for each in IngestPipeline(orc).run())
                outcomes.update(_read_often(zone, 200))
            failed = swapper.has_failed
        print(swapper.complaint, file=sys.stderr, end="")
        outcomes.update(each.outcome for each in IngestPipeline(orc).run())
    texts = texts_of(root)
    wrong = {
        "failed": failed,
        "leaks": sum(secret in each for each in texts) + len(remains(root, {secret})),
        "changed outside": _states(outside) != before,
        "doubled": len(texts) - len(set(texts)),
        "findings": findings(root),
    }
    print(f"  {wrong} {outcomes}", file=sys.stderr)
    return Row(
        "files and folders swapped for links during ingest",
        int(swapper.lines()[-1]),
        f"{outcomes['processed']} files taken, {outcomes['rejected']} refused,"
        f" {outcomes['read']:,} of {outcomes['read'] + outcomes['not read']:,} reads; verify",
        sum(wrong.values()),
    )


def _read_often(zone: Path, times: int) -> Iterator[str]:
    with open_directory(os.fspath(zone)) as descriptor:
        for number in range(times):
            try:
                read_safely("ab"[number % 2] + ".md", descriptor, max_bytes=1_000)
                yield "read"
            except (IngestRejected, StillBeingWritten, FileVanished):
                yield "not read"


def _states(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    """Return the content, mode and time of change of the files of a folder, by name."""
    return {
        each.name: (each.read_bytes(), each.stat().st_mode, each.stat().st_mtime_ns)
        for each in folder.iterdir()
    }


def asked_by_document(folder: Path, seconds: float) -> Row:
    """Send a server what schemathesis makes of its OpenAPI document, from a process of its own."""
    root = folder / "root"
    with service_of(root) as service:
        memory_id = service.orchestrator(NAME, create=True).remember("Mira lives in Oslo.")
    settings = {
        "MEMGRAPH_ROOT": str(root),
    }
    known = {"path.orchestrator": NAME, "path.memory_id": memory_id}
    config = folder / "schemathesis.toml"
    lines = [f"{json.dumps(name)} = {json.dumps(value)}" for name, value in known.items()]
    config.write_text("\n".join(["[parameters]", *lines, ""]))
    command = ["serve", "--json", "--port", "0", "--allow-without-key"]
    with Worker(SERVE, folder / "server", *command, environ=os.environ | settings) as server:
        wait_for(server, 1)
        url = json.loads(server.lines()[0])["data"]["url"]
        subprocess.run(
            [
                *(sys.executable, "-c", SCHEMATHESIS, "--config-file", config, "run"),
                *(f"{url}/openapi.json", "--phases", "fuzzing", "--max-examples", "1"),
                *("--max-time", str(max(REQUESTS_S, int(seconds)))),
                *("--checks", ",".join(CHECKS), "--continue-on-failure", "--request-timeout", "30"),
                *("--suppress-health-check", "all"),
                *("--warnings", "off", "--report", "json", "--report-dir", folder / "report"),
            ],
            check=False,
            cwd=folder,
            stdout=subprocess.DEVNULL,
        )
        failed = server.has_failed
    [report] = (folder / "report").glob("*.json")
    told = json.loads(report.read_text())
    for each in told["failures"]:
        print(json.dumps(each)[:500], file=sys.stderr)
    cases, operations = told["test_cases"], told["operations"]
    return Row(
        "requests of every kind that the OpenAPI document has",
        cases["generated"],
        f"{operations['tested']} operations: no error of the server's own, answers as documented",
        cases["unique_failures"]
        + cases["errored"]
        + operations["errored"]
        + failed
        + (not operations["tested"]),
    )


class Worker:
    """A process whose output goes to files, so that nobody has to read it while it runs."""

    def __init__(
        self,
        script: str,
        output: Path,
        *arguments: object,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._output, self._complaint = output, output.with_name(f"{output.name}.err")
        self.is_over = False
        with self._output.open("wb") as out, self._complaint.open("wb") as err:
            command = [sys.executable, "-c", script, *map(str, arguments)]
            self._process = subprocess.Popen(command, stdout=out, stderr=err, env=environ)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_failed(self) -> bool:
        """Whether it ended before it was killed."""
        return not self.is_over and self._process.poll() is not None

    @property
    def complaint(self) -> str:
        return self._complaint.read_text()[-2_000:]

    def kill(self) -> None:
        if not self.has_failed:
            self.is_over = True
        self._process.kill()
        self._process.wait(60)

    def lines(self) -> list[str]:
        """Return the lines that it has written whole."""
        lines = self._output.read_text().splitlines(keepends=True)
        return [line.strip() for line in lines if line.endswith("\n")]


def _work(root: Path, number: int) -> Worker:
    return Worker(WORK, root.with_name(f"worker-{number}"), prepare(root), number)


def wait_for(worker: Worker, lines: int) -> None:
    end = time.monotonic() + 120
    while len(worker.lines()) < lines:
        if worker.has_failed or time.monotonic() > end:
            raise RuntimeError(f"a process failed: {worker.complaint}")
        time.sleep(0.02)


def _reported(workers: Iterable[Worker]) -> Mapping[str, dict[str, str]]:
    """Return what was reported of each kind: names, and the word that stands behind each."""
    told: dict[str, dict[str, str]] = {kind: {} for kind in REPORTED}
    for each in workers:
        for line in each.lines():
            kind, name, *word = line.split()
            told[kind][name] = "".join(word)
    return told


def _settle(root: Path, told: Mapping[str, dict[str, str]]) -> None:
    """Finish the files and erasures at which processes were killed."""
    with service_of(root) as service:
        orc = service.orchestrator(NAME)
        IngestPipeline(orc).run()
        for memory_id in told["erasing"].keys() - told["erased"].keys():
            with suppress(Conflict):  # it was erased, and its process killed before it said so
                orc.erasure.erase(memory_id=memory_id, reason="asked for", dry_run=False)


def backed_up(root: Path, copy: Path) -> Path:
    with service_of(root) as service:
        service.orchestrator(NAME).exchange.backup(copy)
    return copy


def _restored(root: Path, copy: Path) -> Path:
    """Restore the copy of a root's orchestrator under another root; return that root."""
    other = copy.with_suffix("")
    # An orchestrator of the same name, whose file the copy takes the place of, with the key that
    # sealed the erasures that the copy tells of.
    with service_of(other) as service:
        service.orchestrator(NAME, create=True)
    if (root / "erasure.key").exists():
        shutil.copy(root / "erasure.key", other)
    finish(start(SERVE, "--root", other, "restore", NAME, copy))
    return other


def remains(root: Path, words: set[str]) -> list[Path]:
    """Return the files below a root, but for links to others, that hold one of some words."""
    wanted = re.compile("|".join(words).encode())
    found = []
    for path in root.rglob("*"):
        status = path.lstat()
        alone = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
        if words and alone and wanted.search(path.read_bytes()):
            found.append(path)
    return found


def service_of(root: Path) -> MemoryService:
    return MemoryService(prepare(root), environ={}, background=False)


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> None:
    _, complaint = process.communicate(timeout=300)
    if process.returncode:
        raise RuntimeError(f"a process failed: {complaint[-500:]}")


def kill(process: subprocess.Popen[str]) -> bool:
    """End a process at once; False: it had ended by itself."""
    running = process.poll() is None
    process.kill()
    process.communicate(timeout=60)
    return running


def _records(root: Path, kind: str) -> Iterator[dict[str, Any]]:
    with service_of(root) as service:
        for line in service.orchestrator(NAME).exchange.export_lines():
            record = json.loads(line)
            if record["record"] == kind:
                yield record


def texts_of(root: Path) -> list[str]:
    with service_of(root) as service:
        orc, found, last = service.orchestrator(NAME), [], None
        while page := orc.memories.list(limit=200, before=last):
            found += [each.content for each in page]
            last = page[-1].memory_id
    return found


def _digest(root: Path) -> str:
    """Return the digest of what an export says, but for its time and the journal, which tells of a
    restore and is verified by itself.
    """
    digest = hashlib.sha256()
    with service_of(root) as service:
        for line in service.orchestrator(NAME).exchange.export_lines():
            if json.loads(line)["record"] not in ("header", "journal", "end"):
                digest.update(line)
    return digest.hexdigest()


def findings(root: Path) -> int:
    with service_of(root) as service:
        return sum(service.orchestrator(NAME).verify().totals.values())


if __name__ == "__main__":
    # ``attacks`` shares what this module knows, which must not exist twice.
    from benchmarks import faults

    sys.exit(faults.main())
