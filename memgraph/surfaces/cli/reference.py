"""Generate the reference of all commands, a part of docs/cli.md: ``make references``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer
from typer.core import TyperGroup

from memgraph.surfaces.cli.app import PROGRAM, command_names, load_command, operations
from memgraph.surfaces.cli.builder import common_parameters
from memgraph.surfaces.cli.commands import COMMANDS, MODULES

if TYPE_CHECKING:
    from typer._click.core import Command, Context

    from memgraph.model.operation import Operation

WIDTH = 88
_UNLISTED = """## Commands of other operations

`--help` of each shows its options.

| command | what it does |
|---|---|
"""


def reference() -> str:
    """Return a heading and the help text of every command, in the order of ``memgraph --help``."""
    from memgraph.surfaces.cli.operations import help_of

    root = typer.Context(TyperGroup(name=PROGRAM), info_name=PROGRAM, terminal_width=WIDTH)
    common = root.make_formatter()
    records = [item.get_help_record(root) for item in common_parameters()]
    common.write_dl([record for record in records if record])
    parts = ["## Options of every command\n", _block(common.getvalue())]
    unlisted = _UNLISTED
    for name in command_names():
        parts.extend(_sections(load_command(name), name, root, 2))
    for name, declared in sorted(derived_commands().items()):
        if name not in COMMANDS:
            first, _, _ = help_of(declared).partition("\n\n")
            unlisted += f"| `{name}` | {' '.join(first.split())} |\n"
    return "\n".join([*parts, unlisted])


def derived_commands() -> dict[str, Operation]:
    """Return the operations whose commands are derived, by the names of the commands."""
    return {name: item for name, item in operations().items() if name not in MODULES}


def command_paths() -> list[str]:
    """Return all runnable commands; sub-commands are preceded by their group: ``key list``."""
    paths: list[str] = []
    for name in command_names():
        command = load_command(name)
        if isinstance(command, TyperGroup):
            paths.extend(f"{name} {item}" for item in command.commands)
        else:
            paths.append(name)
    return paths


def _sections(command: Command, name: str, parent: Context, level: int) -> Iterator[str]:
    context = typer.Context(command, info_name=name, parent=parent, terminal_width=WIDTH)
    # The common options are documented once.
    common = {item.name for item in common_parameters()}
    params = command.params
    command.params = [item for item in params if item.name not in common]
    yield f"{'#' * level} {context.command_path}\n"
    yield _block(command.get_help(context))
    command.params = params
    if isinstance(command, TyperGroup):
        for key, subcommand in command.commands.items():
            yield from _sections(subcommand, key, context, level + 1)


def _block(text: str) -> str:
    lines = "\n".join(line.rstrip() for line in text.strip("\n").splitlines())
    return f"```text\n{lines}\n```\n"
