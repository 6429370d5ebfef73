"""Commands that are derived from operations: what an engineer gets for declaring one."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pytest
from pydantic import Field

from memgraph import MemoryService
from memgraph.client import AsyncClient, Client
from memgraph.client.orchestrator import _remote_group
from memgraph.model.access import Permission
from memgraph.model.operation import AsOf, MemoryId, WireFormat, operation, operations_of
from memgraph.model.values import Name, Reason, Value
from memgraph.operations.everyday import Everyday
from memgraph.operations.handle import Handle
from memgraph.operations.memories import Memories
from memgraph.operations.orchestrator import Orchestrator
from memgraph.operations.threads import awaited_group
from memgraph.surfaces.cli.builder import make_command
from memgraph.surfaces.cli.operations import command_of
from memgraph.surfaces.http.document import document
from memgraph.surfaces.http.operations import router_of

if TYPE_CHECKING:
    from conftest import CommandLine


class Label(Value):
    """A label of a memory."""

    memory_id: str
    name: str
    at: str | None


class Labels(Handle, group="memories"):
    """The toy: what an engineer writes to add an operation."""

    @operation(Permission.WRITE, "POST /memories/{memory_id}/labels", body="LabelsWanted")
    def label_memory(
        self,
        memory_id: MemoryId,
        names: Annotated[Sequence[str], WireFormat(tuple[Name, ...])],
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
        memory = self._as(Everyday).get(memory_id)
        made = [f"{name}!" if loud else name for name in names[:most]]
        at = None if as_of is None else str(as_of)
        return [Label(memory_id=memory.memory_id, name=f"{name}, {reason}", at=at) for name in made]


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Add an operation to the library."""
    monkeypatch.setattr(Memories, "label_memory", Labels.label_memory, raising=False)
    made = (_remote_group, awaited_group)
    for each in made:
        each.cache_clear()
    yield
    for each in made:
        each.cache_clear()


@pytest.mark.usefixtures("toy")
def test_a_declared_operation_is_a_command(cli: CommandLine) -> None:
    memory_id = cli.remember("The shop closes at six.")
    given = ("label-memory", "orc-1", memory_id, "red", "blue", "green", "--reason", "asked")
    answer = cli.json(*given, "--most", "2", "--loud", "--as-of", "2026-01-01")
    assert [each["name"] for each in answer["items"]] == ["red!, asked", "blue!, asked"]
    assert answer["items"][0]["at"] == "2026-01-01"
    assert "red, asked" in cli(*given).out


@pytest.mark.usefixtures("toy")
def test_a_declared_operation_is_on_every_surface(tmp_path: Path) -> None:
    with MemoryService(tmp_path / "root", environ={}, background=False) as service:
        orc = service.orchestrator("orc-1", create=True)
        memory_id = orc.remember("The shop closes at six.")
        given = {"memory_id": memory_id, "names": ["red"], "reason": "asked"}
        label = Label(memory_id=memory_id, name="red, asked", at=None)
        for methods in (orc, Client("http://127.0.0.1:1").orchestrator("orc-1")):
            told = inspect.signature(methods.memories.label_memory)  # type: ignore[attr-defined]
            assert {*given, "most", "loud"} < {*told.parameters}
        assert orc.memories.label_memory(**given) == [label]  # type: ignore[attr-defined]
        far = AsyncClient("http://127.0.0.1:1").orchestrator("orc-1")
        for methods in (orc.aio, far):
            awaited = methods.memories.label_memory  # type: ignore[attr-defined]
            assert inspect.iscoroutinefunction(awaited)
        made = document([router_of(Memories)])
        [route] = made["paths"]["/v1/orchestrators/{orchestrator}/memories/{memory_id}/labels"]
        assert route == "post"


@pytest.mark.usefixtures("toy")
def test_its_help_is_its_docstring_and_its_annotations(cli: CommandLine) -> None:
    told = " ".join(cli("label-memory", "--help").out.split())
    assert "Usage: memgraph label-memory [OPTIONS] ORC MEMORY NAMES..." in told
    assert "Show the labels that a memory gets." in told
    assert "What it is labelled with." in told
    assert "--most N Labels at most. 1 to 3. [default: 3]" in told


def test_every_operation_has_a_form_on_the_command_line() -> None:
    for name, declared in operations_of(Orchestrator).items():
        command = make_command(command_of(declared.function), name)
        sent = {each.name for each in command.params if each.expose_value}
        assert {*declared.parameters} <= sent, name
        assert declared.rest not in sent, name


class Options(Value):
    """An object among the parameters."""

    colour: str


class Painted(Handle, group="memories"):
    @operation(Permission.READ, "POST /painted")
    def painted(self, labels: Sequence[Label], *, options: Options | None = None) -> Sequence[str]:
        """Return the names of labels with a colour."""
        return [f"{'no' if options is None else options.colour} {each.name}" for each in labels]


def test_objects_and_lists_of_them_are_json(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Memories, "painted", Painted.painted, raising=False)
    labels = (
        '[{"memory_id": "m", "name": "a", "at": null}, {"memory_id": "m", "name": "b", "at": null}]'
    )
    assert cli.json("painted", "orc-1", labels)["items"] == ["no a", "no b"]
    red = cli.json("painted", "orc-1", labels, "--options", '{"colour": "red"}')
    assert red["items"] == ["red a", "red b"]
    ran = cli("painted", "orc-1", labels, "--options", "red")
    assert (ran.code, "options must be JSON of its type" in ran.err) == (2, True)
