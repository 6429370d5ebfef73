"""``memgraph bench context``: how long a context takes, beside recall on the same memories.

Many projects with talk, facts and tasks of their own, and some that belongs to everybody; see
``MIX``. Through the public interface with default settings.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.synthetic import Corpus, corpus
from benchmarks.timing import NO_READER, Tell, percentiles, seconds
from memgraph.errors import InvalidInput
from memgraph.model.context import Task
from memgraph.model.enums import MemoryType, Scope
from memgraph.model.values import MemoryInput
from memgraph.operations.context.builder import ContextAssembler
from memgraph.operations.orchestrator import Orchestrator
from memgraph.rules.scope import Viewer
from memgraph.service.memory_service import MemoryService

LEAST, MOST = 100, 1_000_000
MEMORIES_PER_PROJECT, ITEMS_PER_TASK = 1_000, 20
# Of a hundred memories one after another: turns of a project's talk, turns of talk outside of any
# project, facts of a project, items of a task; the last two are everybody's facts.
MIX = {
    "turns": 60,
    "turns_of_everybody": 10,
    "facts": 15,
    "task_items": 13,
    "facts_of_everybody": 2,
}
WARM_UP = 10
_TYPES = tuple(MemoryType)
_NAME = "bench"
_STEP = 5_000


def run(
    sizes: Sequence[int],
    tell: Tell = lambda _stage, _done, _total: None,
    *,
    rounds: int = 100,
    budget_tokens: int = 2_000,
    seed: int = 1,
    keep: Path | None = None,
) -> dict[str, Any]:
    """Measure at every size, smallest first.

    Args:
        tell: takes a stage, how much of it is done, and how much there is.
        rounds: measurements of each kind, taken in turns.
        keep: a folder where the filled databases stay; those that are there are taken as they are.

    Returns:
        ``mix``, ``rounds``, ``budget_tokens`` and, under ``sizes`` by number of memories:
        ``items`` and ``tokens`` of a
        context on average, and p50, p95 and p99 in milliseconds of ``context``,
        ``context_without_query``, ``recall`` of the same view and ``recall_of_all``.

    Raises:
        InvalidInput: no size, or one outside 100..1,000,000.
    """
    if not sizes or not all(LEAST <= each <= MOST for each in sizes):
        raise InvalidInput(f"sizes: at least one, each {LEAST} to {MOST:,} memories")
    found = {}
    for size in sorted(set(sizes)):
        with _folder(keep, size) as folder, _service(folder) as service:
            named = _named(size, tell)
            talk = corpus(seed)
            _fill(service, talk, size, named)
            found[str(size)] = _measured(service, talk, size, rounds, budget_tokens, named)
    return {"mix": MIX, "rounds": rounds, "budget_tokens": budget_tokens, "sizes": found}


@contextmanager
def _folder(keep: Path | None, size: int) -> Iterator[Path]:
    if keep is not None:
        yield keep / f"context-{size}"
        return
    with tempfile.TemporaryDirectory(prefix="memgraph-bench-") as folder:
        yield Path(folder)


def _service(folder: Path) -> MemoryService:
    return MemoryService(folder, config=NO_READER, environ={}, background=False)


def _fill(service: MemoryService, talk: Corpus, size: int, tell: Tell) -> None:
    memory = service.orchestrator(_NAME, create=True)
    # A run that was stopped goes on where it was; what is there already is a duplicate or counted.
    done = sum(memory.maintenance.stats()["memories"]["status"].values())
    for start in range(done, size, _STEP):
        tell("filling", start, size)
        memory.remember_many(_memories(talk, start, min(start + _STEP, size), size))
    memory.settle()


def _memories(talk: Corpus, start: int, end: int, size: int) -> Iterator[MemoryInput]:
    """Memories ``start`` to ``end - 1`` of the mix."""
    for number, turn in enumerate(talk.turns(start, end - start), start=start):
        kind = _kind(number)
        content = f"{number}: {turn.content}"
        if kind.startswith("turns"):
            yield turn.model_copy(update={"content": content} | _scope(kind, number, size))
            continue
        yield MemoryInput(
            content=content,
            type=_TYPES[number // 7 % len(_TYPES)],
            importance=number * 37 % 101,
            event_time=turn.event_time,
            **_scope(kind, number, size),
        )


def _kind(number: int) -> str:
    # Spread over the hundred, not in runs.
    place = number * 61 % 100
    for kind, share in MIX.items():
        if place < share:
            return kind
        place -= share
    raise AssertionError("the shares of the mix make a hundred")


def _scope(kind: str, number: int, size: int) -> dict[str, Any]:
    if kind.endswith("of_everybody"):
        return {"scope": Scope.GLOBAL}
    if kind == "task_items":
        return {"scope": Scope.SESSION, "scope_id": _task(number)}
    return {"scope": Scope.PROJECT, "scope_id": _project(number, size)}


def _task(number: int) -> str:
    # Thirteen of a hundred memories belong to tasks.
    return f"task-{number * MIX['task_items'] // (100 * ITEMS_PER_TASK)}"


def _project(number: int, size: int) -> str:
    # A conversation is one project's.
    return f"project-{number // 500 % max(size // MEMORIES_PER_PROJECT, 1)}"


def _measured(
    service: MemoryService, talk: Corpus, size: int, rounds: int, budget: int, tell: Tell
) -> dict[str, Any]:
    assembler = ContextAssembler(service, _NAME)
    taken: dict[str, list[float]] = {
        name: [] for name in ("context", "context_without_query", "recall", "recall_of_all")
    }
    built = []
    everything = _handle(service, None, size)
    for at in range(WARM_UP + rounds):
        tell("measuring", at, WARM_UP + rounds)
        number = at * 7919 % size
        task = Task(task_id=_task(number), project_id=_project(number, size))
        question = talk.question(number, size)
        narrow = _handle(service, task, size)
        build = partial(assembler.build_context, task, budget_tokens=budget)
        kinds: dict[str, Callable[[], Any]] = {
            "context": partial(build, query=question),
            "context_without_query": build,
            "recall": partial(narrow.recall, question),
            "recall_of_all": partial(everything.recall, question),
        }
        for name, action in kinds.items():
            taken[name].append(seconds(action))
        built.append(build(query=question))
    return {
        "items": round(sum(len(each.items) for each in built) / len(built), 1),
        "tokens": round(sum(each.token_cost for each in built) / len(built)),
        **{name: percentiles(times[WARM_UP:]) for name, times in taken.items()},
    }


def _handle(service: MemoryService, task: Task | None, size: int) -> Orchestrator:
    """Who sees what a context of the task sees; None: who sees every project."""
    tasks = set()
    if task is None:
        projects = {_project(number, size) for number in range(0, size, 500)}
    else:
        projects, tasks = {task.project or ""}, {task.task_id}
    viewer = Viewer(project_ids=frozenset(projects), session_ids=frozenset(tasks))
    return service.orchestrator(_NAME, viewer=viewer)


def _named(size: int, tell: Tell) -> Tell:
    return lambda stage, done, total: tell(f"{size:,}: {stage}", done, total)
