"""What methods take as ``**fields`` is exactly the fields of their models."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_args, get_type_hints

import pytest

from memgraph import MemoryHooks, Orchestrator
from memgraph.model.context import ContextRequest
from memgraph.model.recall import RecallRequest
from memgraph.model.turns import MessageInput
from memgraph.model.values import Correction, EpisodeInput, MemoryInput, Value
from memgraph.operations.context.builder import ContextAssembler

OPEN = [
    (Orchestrator.remember, MemoryInput),
    (Orchestrator.memories.store, MemoryInput),
    (Orchestrator.correct, Correction),
    (Orchestrator.save_episode, EpisodeInput),
    (Orchestrator.recall, RecallRequest),
    (Orchestrator.contexts.build, ContextRequest),
    (ContextAssembler.build_context, ContextRequest),
]


def rest_of(function: Callable[..., Any]) -> tuple[dict[str, Any], set[str]]:
    """Return what a function takes as ``**fields``, and the names of its other parameters."""
    *names, last = inspect.signature(function).parameters.values()
    assert last.kind is inspect.Parameter.VAR_KEYWORD
    [fields] = get_args(get_type_hints(function, include_extras=True)[last.name])
    return get_type_hints(fields), {item.name for item in names}


@pytest.mark.parametrize(("function", "model"), OPEN, ids=lambda item: item.__qualname__)
def test_fields_are_those_of_the_model(function: Callable[..., Any], model: type[Value]) -> None:
    fields, names = rest_of(function)
    assert fields.keys().isdisjoint(names)
    assert fields.keys() == model.model_fields.keys() - names
    for name, hint in fields.items():
        optional = type(None) in get_args(model.model_fields[name].annotation)
        assert (type(None) in get_args(hint)) == optional, name


def test_fields_of_a_message_are_those_of_its_input() -> None:
    fields, names = rest_of(MemoryHooks.on_message)
    assert fields.keys() - {"orchestrator"} == MessageInput.model_fields.keys() - names
