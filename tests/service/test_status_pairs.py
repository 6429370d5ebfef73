"""Two processes change the status of one memory at the same time: one of them wins, and the other
is told by whom. Pairs of operations, on each engine."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement, count
from pathlib import Path
from typing import Any

import pytest
from processes import PATIENCE_S, Process
from sampling import often, third

from memgraph import MemoryService, Orchestrator, Viewer
from memgraph.errors import Conflict, MemgraphError
from memgraph.model.context import ContextItem
from memgraph.model.enums import MemoryStatus, Scope
from memgraph.operations.context.database_backend import DatabaseBackend
from memgraph.operations.tools import functions
from memgraph.providers.fake import FakeEmbedding

pytestmark = pytest.mark.engines
NAME = "orc-1"
VIEWER = Viewer(project_ids=frozenset({"p"}))
ROUNDS = often(4)
STEPS = often(48)

Ids = dict[str, str]
Result = tuple[str, Any]


def _item(ids: Ids, text: str) -> ContextItem:
    at = "2026-01-01T00:00:00Z"
    item = {"context_item_id": ids["item"], "kind": "note", "source": "project/p", "timestamp": at}
    return ContextItem.model_validate(item | {"payload": {"text": text}})


def _backend(orc: Orchestrator) -> DatabaseBackend:
    return DatabaseBackend(orc, Scope.PROJECT, "p")


# What ends the subject as the one that holds.
ENDINGS: dict[str, Callable[[Orchestrator, Ids], Any]] = {
    "correct": lambda orc, ids: orc.correct(ids["one"], f"{ids['one']} is red.", reason="x"),
    "correct otherwise": lambda orc, ids: orc.correct(
        ids["one"], f"{ids['one']} is 7.", reason="x"
    ),
    "correct_fact": lambda orc, ids: functions.correct_fact(
        orc, ids["one"], f"{ids['one']} is old."
    )["memory_id"],
    "relate": lambda orc, ids: orc.relate(ids["new"], "Updates", ids["one"]),
    "retract": lambda orc, ids: orc.retract(ids["one"], reason="x"),
    "forget": lambda orc, ids: functions.forget(orc, ids["one"]),
    "lose": lambda orc, ids: orc.contradictions.resolve(
        ids["edge"], winner=ids["other"], reason="x"
    ),
}
OTHERS: dict[str, Callable[[Orchestrator, Ids], Any]] = {
    "win": lambda orc, ids: orc.contradictions.resolve(ids["edge"], winner=ids["one"], reason="x"),
    "dismiss": lambda orc, ids: orc.contradictions.dismiss(ids["edge"], reason="x"),
    "confirm": lambda orc, ids: orc.confirm(ids["one"]),
    "promote": lambda orc, ids: orc.contexts.promote(ids["one"], "global"),
    "put": lambda orc, ids: _backend(orc).add(_item(ids, "a")),
    "put otherwise": lambda orc, ids: _backend(orc).add(_item(ids, "b")),
    "delete": lambda orc, ids: _backend(orc).delete(ids["item"]),
}
# Of a memory whose successor was retracted.
RETURNS: dict[str, Callable[[Orchestrator, Ids], Any]] = {
    "restore": lambda orc, ids: orc.restore(ids["successor"], reason="x"),
    "restore old": lambda orc, ids: orc.restore(ids["one"], reason="x"),
    **{name: ENDINGS[name] for name in ("correct", "correct otherwise", "relate")},
}
MERGES: dict[str, Callable[[Orchestrator, Ids], Any]] = {
    f"{other} into {into}": lambda orc, ids, into=into, other=other: (
        orc.entities.merge(ids[into], ids[other], reason="x").entity_id
    )
    for into, other in (("b", "a"), ("c", "a"), ("a", "b"))
}
# The same pair, either way round.
OPENINGS: dict[str, Callable[[Orchestrator, Ids], Any]] = {
    "contradict": lambda orc, ids: orc.relate(ids["new"], "Contradicts", ids["other"]),
    "contradict back": lambda orc, ids: orc.relate(ids["other"], "Contradicts", ids["new"]),
}
CALLS = ENDINGS | OTHERS | RETURNS | MERGES | OPENINGS
ALIKE = {"correct otherwise": "correct", "put otherwise": "put"}
"""What does the same as another call, but for its text: the two of them are a pair."""
CHANGES = [
    (one, other)
    for one, other in combinations_with_replacement([*ENDINGS, *OTHERS], 2)
    if ALIKE.get(one, other) == other and ALIKE.get(other, one) == one
]
DECISIONS = {"lose", "win", "dismiss"}
# Either order of these ends in the same.
BOTH = ({"retract", "lose"}, {"forget", "lose"}, {"forget", "retract"})


def _work(root: Path, url: str, calls: Any, together: Any) -> None:
    """Runs in the process: make the calls that it is sent, each at the time of the other's."""
    with _service(root, url) as service:
        orc = service.orchestrator(NAME, viewer=VIEWER)
        for name, ids in iter(calls.recv, None):
            together.wait(PATIENCE_S)
            try:
                calls.send(("done", CALLS[name](orc, ids)))
            except MemgraphError as error:
                by = error.details.get("replaced_by") or error.details.get("entity_id")
                calls.send((error.code, by))


def _count(root: Path, url: str, first: str, who: str, together: Any) -> None:
    """Runs in the process: raise a number by corrections of the memory that holds it."""
    with _service(root, url) as service:
        orc = service.orchestrator(NAME, viewer=VIEWER)
        together.wait(PATIENCE_S)
        head, steps = first, 0
        while steps < STEPS:
            number = int(orc.get(head).content.split()[0])
            try:
                head = orc.correct(head, f"{number + 1} by {who}", reason="x")
                steps += 1
            except Conflict as error:
                [head] = error.details["replaced_by"]


def _service(root: Path, url: str) -> MemoryService:
    settings = {"memory.storage.url": url, "memory.storage.synchronous": "NORMAL"}
    return MemoryService(
        root, environ={}, config=settings, background=False, embedding=FakeEmbedding(16)
    )


@dataclass
class Two:
    """Two processes on one store, and the store."""

    orc: Orchestrator
    calls: list[Any]

    def each(self, names: tuple[str, str], ids: Ids) -> list[Result]:
        """Let each process make one of the calls; what both were told."""
        for pipe, name in zip(self.calls, names, strict=True):
            pipe.send((name, ids))
        assert all(pipe.poll(PATIENCE_S) for pipe in self.calls)
        return [pipe.recv() for pipe in self.calls]


@pytest.fixture
def two(tmp_path: Path, storage_url: str) -> Iterator[Two]:
    root, context = tmp_path / "root", multiprocessing.get_context("forkserver")
    together = context.Barrier(2)
    pipes = [context.Pipe() for _ in range(2)]
    with _service(root, storage_url) as service:
        orc = service.orchestrator(NAME, create=True, viewer=VIEWER)
        with (
            Process(_work, root, storage_url, pipes[0][1], together),
            Process(_work, root, storage_url, pipes[1][1], together),
        ):
            yield Two(orc, [ours for ours, _ in pipes])


def _subject(orc: Orchestrator, number: int) -> Ids:
    """A fact of a machine, one that contradicts it, one that may replace it, and an item."""
    fields: dict[str, Any] = {"scope": "project", "scope_id": "p", "confidence": 0.8}
    fields["source"] = {"captured_by": "extractor"}
    names = ("one", "other", "new")
    ids = {name: orc.remember(f"Entry {number} of {name}", **fields) for name in names}
    ids["edge"] = orc.relate(ids["other"], "Contradicts", ids["one"])
    ids["item"] = f"item-{number}"
    _backend(orc).add(_item(ids, "first"))
    return ids


def _heads(orc: Orchestrator, ids: Ids) -> set[str]:
    """The memories that hold of the chain of the subject."""
    trace = orc.trace(ids["one"])
    chain = {ids["one"], ids.get("successor", ids["one"])}
    chain |= {step.memory_id for step in trace.replaced_by}
    return {each for each in chain if orc.get(each).status is MemoryStatus.ACTIVE}


def _require_agreement(names: tuple[str, str], ids: Ids, results: list[Result]) -> None:
    """Whoever is refused learns who won; two that are acknowledged have done the same."""
    told = sorted(zip(names, results, strict=True), key=lambda each: each[1][0] != "done")
    (winner, (done, value)), (_, (code, by)) = told
    assert done == "done", told
    if code == "done":
        assert set(names) in BOTH or (names[0] == names[1] and value == by), told
        return
    heads = {"relate": ids["new"], "lose": ids["other"]}
    head = heads.get(winner, value)
    assert winner in ("retract", "forget") or (code, by) == ("memory.conflict", [head]), told


def test_of_two_changes_of_a_memory_one_wins(two: Two, storage_url: str) -> None:
    numbers = count()
    for _ in range(ROUNDS):
        for names in third(CHANGES, 1 if storage_url else 0):
            ids = _subject(two.orc, next(numbers))
            results = two.each(names, ids)
            assert len(_heads(two.orc, ids)) <= 1, (names, results)
            assert len(_backend(two.orc).query({"context_item_id": ids["item"]})) <= 1
            assert "done" in [code for code, _ in results], (names, results)
            if set(names) <= ENDINGS.keys():
                _require_agreement(names, ids, results)
            if set(names) < DECISIONS and len(set(names)) == 2:
                codes = sorted(code for code, _ in results)
                assert codes == ["done", "memory.conflict"], (names, results)
    assert two.orc.verify().totals == {}


def test_a_contradiction_is_stored_once_whichever_way_round(two: Two) -> None:
    for number in range(2 * ROUNDS):
        ids = _subject(two.orc, number)
        results = two.each(("contradict", "contradict back"), ids)
        [edge] = {edge for _, edge in results}
        assert [code for code, _ in results] == ["done", "done"]
        found = two.orc.contradictions.list(memory_id=ids["new"]).items
        assert [each.edge.edge_id for each in found] == [edge]


def test_of_two_returns_one_wins(two: Two) -> None:
    for number in range(ROUNDS):
        for place, names in enumerate(combinations_with_replacement(RETURNS, 2)):
            ids = _subject(two.orc, 100 * number + place)
            ids["successor"] = two.orc.correct(ids["one"], f"{ids['one']} is wrong.", reason="x")
            two.orc.retract(ids["successor"], reason="x")
            results = two.each(names, ids)
            assert "done" in [code for code, _ in results], (names, results)
            assert len(_heads(two.orc, ids)) == 1, (names, results)
    assert two.orc.verify().totals == {}


def test_of_two_merges_one_wins(two: Two) -> None:
    first = ("Anton", "Bruno", "Carla", "Dora", "Emil", "Frieda", "Gustav", "Hanna", "Ivo")
    surnames = iter(f"{one}{two}" for one in ("Kel", "Mar", "Qui", "Sto") for two in ("ler", "sh"))
    for names in combinations_with_replacement(MERGES, 2):
        surname = next(surnames)
        ids = {key: f"{given} {surname}" for key, given in zip("abc", first, strict=False)}
        ids |= {
            key: two.orc.entities.list(prefix=name)[0].entity_id
            for key, name in ids.items()
            if two.orc.remember(f"{name} came by.")
        }
        results = two.each(names, ids)
        codes = sorted(code for code, _ in results)
        if set(names) == {"a into c", "b into a"}:
            # In either order all three are one.
            assert codes == ["done", "done"], (names, results)
            continue
        assert codes == ["done", "memory.conflict"], (names, results)
        assert len({by for _, by in results}) == 1, (names, results)
    assert two.orc.verify().totals == {}


def test_a_chain_counts_exactly(tmp_path: Path, storage_url: str) -> None:
    together = multiprocessing.get_context("forkserver").Barrier(2)
    with _service(tmp_path, storage_url) as service:
        orc = service.orchestrator(NAME, create=True)
        first = orc.remember("0 by nobody")
        with (
            Process(_count, tmp_path, storage_url, first, "a", together) as one,
            Process(_count, tmp_path, storage_url, first, "b", together) as other,
        ):
            assert (one.wait(), other.wait()) == (0, 0)
        [head] = orc.memories.list(statuses=(MemoryStatus.ACTIVE,))
        assert int(head.content.split()[0]) == 2 * STEPS
        assert orc.verify().totals == {}
