"""Commands that are derived from operations: what an engineer gets for declaring one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import pytest
from pydantic import Field
from serving_worlds import serving

from memgraph.model.access import Permission
from memgraph.model.operation import AsOf, MemoryId, operation, operations_of
from memgraph.model.values import Reason, Value
from memgraph.operations.orchestrator import Orchestrator
from memgraph.surfaces.cli.builder import make_command
from memgraph.surfaces.cli.operations import command_of

if TYPE_CHECKING:
    from conftest import CommandLine
else:
    CommandLine = object


class Label(Value):
    """A label of a memory."""

    memory_id: str
    name: str
    at: str | None


@operation(Permission.WRITE, "POST", "/memories/{memory_id}/labels", tag="memories")
def label_memory(
    self: Orchestrator,
    memory_id: MemoryId,
    names: Sequence[str],
    *,
    most: Annotated[int, Field(ge=1, le=3, description="Labels at most.")] = 3,
    as_of: AsOf = None,
    loud: bool = False,
    reason: Reason,
) -> Sequence[Label]:
    """Return the labels that a memory gets.

    Args:
        names: what it is labelled with.
    """
    memory = self.get(memory_id)
    told = [f"{each}!" if loud else each for each in names[:most]]
    return [Label(memory_id=memory.memory_id, name=f"{each}, {reason}", at=as_of) for each in told]


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add an operation to the library."""
    monkeypatch.setattr(Orchestrator, "label_memory", label_memory, raising=False)


@pytest.mark.usefixtures("toy")
def test_a_declared_operation_is_a_command(cli: CommandLine) -> None:
    memory_id = cli.remember("The shop closes at six.")
    given = ("label-memory", "orc-1", memory_id, "red", "blue", "green", "--reason", "asked")
    answer = cli.json(*given, "--most", "2", "--loud", "--as-of", "2026-01-01")
    assert [each["name"] for each in answer["items"]] == ["red!, asked", "blue!, asked"]
    assert answer["items"][0]["at"] == "2026-01-01"
    assert "red, asked" in cli(*given).out


@pytest.mark.usefixtures("toy")
def test_its_help_is_its_docstring_and_its_annotations(cli: CommandLine) -> None:
    told = " ".join(cli("label-memory", "--help").out.split())
    assert "Usage: memgraph label-memory [OPTIONS] ORC ID NAMES..." in told
    assert "Show the labels that a memory gets." in told
    assert "What it is labelled with." in told
    assert "--most N Labels at most. 1 to 3. [default: 3]" in told


@pytest.mark.usefixtures("toy")
def test_a_misspelled_operation_is_suggested(cli: CommandLine) -> None:
    ran = cli("label-memori", "orc-1")
    assert (ran.code, "Did you mean label-memory?" in ran.err) == (2, True)


@pytest.mark.parametrize("name", operations_of(Orchestrator))
def test_every_operation_has_a_form_on_the_command_line(name: str) -> None:
    command = make_command(command_of(operations_of(Orchestrator)[name].function), name)
    sent = {each.name for each in command.params if each.expose_value}
    declared = operations_of(Orchestrator)[name]
    assert sent - {"orchestrator", declared.rest} == {*declared.parameters}


def test_what_has_no_plain_form_is_json(cli: CommandLine) -> None:
    items = '[{"content": "The shop closes at six."}, {"content": "It opens at nine."}]'
    stored = cli.json("remember-many", "orc-1", items)["items"]
    assert [each["outcome"] for each in stored] == ["stored", "stored"]
    ran = cli("remember-many", "orc-1", "nine")
    assert (ran.code, "items takes JSON of its type" in ran.err) == (2, True)
    turn = ("save-episode", "orc-1", "Hello.", "--session-id", "s1", "--source-role", "user")
    cli.json(*turn, "--fields", '{"turn_id": "t-1"}')
    [memory] = cli.json("list", "orc-1", "--session-id", "s1", "--kind", "episode")["memories"]
    assert memory["turn_id"] == "t-1"


def test_a_derived_command_asks_a_server(cli: CommandLine) -> None:
    memory_id = cli.remember("Ada Okafor lives in Lisbon.")
    with serving(cli.root) as served:
        options = ("--server", served.url, "--key", served.key(), "--json")
        found = cli("get-entity-info", "orc-1", "Ada Okafor", *options).data
    assert [each["memory_id"] for each in found["memories"]] == [memory_id]
