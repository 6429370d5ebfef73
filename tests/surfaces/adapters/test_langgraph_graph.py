"""A graph of LangGraph, compiled with our store: what a node puts, a node of a later run finds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore
from working import working

from memgraph import MemoryService
from memgraph.surfaces.adapters.langgraph import MemgraphStore


class State(TypedDict):
    said: str
    known: list[str]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[MemoryService]:
    with working(tmp_path / "root") as made:
        yield made


def namespace(config: RunnableConfig) -> tuple[str, str]:
    return "memories", config["configurable"]["user"]


def recall(state: State, config: RunnableConfig, *, store: BaseStore) -> dict[str, Any]:
    found = store.search(namespace(config), query=state["said"], limit=3)
    return {"known": [each.value["said"] for each in found if each.score is not None]}


def note(state: State, config: RunnableConfig, *, store: BaseStore) -> None:
    store.put(namespace(config), str(len(state["said"])), {"said": state["said"]})


async def recall_async(state: State, config: RunnableConfig, *, store: BaseStore) -> dict[str, Any]:
    found = await store.asearch(namespace(config), query=state["said"], limit=3)
    return {"known": [each.value["said"] for each in found if each.score is not None]}


async def note_async(state: State, config: RunnableConfig, *, store: BaseStore) -> None:
    await store.aput(namespace(config), str(len(state["said"])), {"said": state["said"]})


def compiled(store: BaseStore, *, is_async: bool) -> Any:
    graph = StateGraph(State)
    graph.add_node("recall", recall_async if is_async else recall)
    graph.add_node("note", note_async if is_async else note)
    graph.add_edge(START, "recall")
    graph.add_edge("recall", "note")
    graph.add_edge("note", END)
    return graph.compile(store=store)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_later_run_finds_what_an_earlier_one_put(service: MemoryService, is_async: bool) -> None:
    orc = service.orchestrator("orc-1", create=True)

    def run(said: str, user: str) -> list[str]:
        # A graph and a store of their own: nothing but the database joins the runs.
        graph = compiled(MemgraphStore(orc), is_async=is_async)
        config = {"configurable": {"user": user}}
        state = {"said": said, "known": []}
        done = (
            asyncio.run(graph.ainvoke(state, config)) if is_async else graph.invoke(state, config)
        )
        known: list[str] = done["known"]
        return known

    told = "My sister keeps herons in Turin."
    assert run(told, "alice") == []
    assert run("Which birds are in Turin, herons?", "alice") == [told]
    assert run("Which birds are in Turin, herons?", "bob") == []
    # Part of the one memory of the orchestrator, with its sources and its history.
    assert told in orc.recall("herons of the sister").items[0].memory.content
    assert orc.verify().ok
