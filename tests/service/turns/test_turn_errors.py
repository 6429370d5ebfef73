"""Whatever goes wrong inside the memory, a hook answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memgraph import MemoryHooks, MemoryService, errors
from memgraph.errors import InvalidInput
from memgraph.service.turns.lanes import Lane, LaneError

KINDS: list[type[BaseException]] = [
    errors.DatabaseBusy,
    OSError,
    StopIteration,
    SystemExit,
    KeyboardInterrupt,
]
ASKED_MS = 150
LONG_MS = 30_000
HOOKS: dict[str, Callable[[MemoryHooks], Any]] = {
    "on_message": lambda one: one.on_message("hi", conversation_id="c"),
    "on_step": lambda one: one.on_step("hi", workflow_run_id="r", step_id="s"),
    "on_step_output": lambda one: one.on_step_output(
        "Todo: x y", workflow_run_id="r", step_id="s", task_id="t"
    ),
    "on_transcript": lambda one: one.on_transcript([{"content": "x"}], conversation_id="c"),
    "on_diagnostics": lambda one: one.on_diagnostics("why?"),
    "record_findings": lambda one: one.record_findings(["x y"]),
    "end_task": lambda one: one.end_task("t", ["fact_1"], project_id="p"),
    "another": lambda one: one.on_step(
        "hi", workflow_run_id="r", step_id="s", orchestrator="another"
    ),
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryService]:
    config = {"memory.storage.synchronous": "NORMAL", "memory.embedding.provider": "none"}
    root: Path = tmp_path_factory.mktemp("root")
    with MemoryService(root, config=config, environ={}) as service:
        service.orchestrator("a", create=True)
        yield service


@pytest.mark.parametrize("kind", KINDS, ids=lambda each: each.__name__)
def test_no_error_leaves_a_hook_and_none_lasts(
    service: MemoryService, kind: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = MemoryHooks(service, "a", deadline_ms=ASKED_MS)

    def breaking(*_args: object, **_fields: object) -> None:
        raise kind("boom")

    with monkeypatch.context() as broken:
        broken.setattr(service, "opened", breaking)
        for name, call in HOOKS.items():
            told = call(hooks)
            assert told.warnings, name
    # The same hooks work again.
    turn = hooks.on_message("again", conversation_id="c", deadline_ms=LONG_MS)
    assert turn.acknowledged
    assert hooks.on_step_output(
        "Todo: x y", workflow_run_id="r", step_id="s", deadline_ms=LONG_MS
    ).acknowledged
    hooks.close()


def test_a_system_without_threads_fails_no_turn(
    service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    hooks = MemoryHooks(service, "a", deadline_ms=ASKED_MS)
    with monkeypatch.context() as broken:
        broken.setattr(threading.Thread, "start", refuse)
        turn = hooks.on_message("lost", conversation_id="c")
        assert {"capture.refused", "memory.full"} <= set(turn.codes)
        assert hooks.waiting == 0
        with pytest.raises(LaneError, match="another thread"):
            Lane("one", threads=1, waiting=1).submit(lambda: None).result(0)
        with pytest.raises(InvalidInput):
            hooks.on_message("x", conversation_id="")
    turn = hooks.on_message("kept", conversation_id="c", deadline_ms=LONG_MS)
    assert turn.acknowledged
    assert hooks.close() == 0
