"""Generate the reference of all commands: ``python -m memgraph.surfaces.cli.reference``.

The output is part of docs/cli.md; a test compares the two.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer
from typer.core import TyperGroup

from memgraph.model.operation import operations_of
from memgraph.operations.groups import Operations
from memgraph.surfaces.cli.app import PROGRAM, command_names, load_command
from memgraph.surfaces.cli.builder import common_parameters

if TYPE_CHECKING:
    from typer._click.core import Command, Context, Parameter

    from memgraph.model.operation import Operation

WIDTH = 88


def reference() -> str:
    """Return a heading and the help text of every command, in the order of ``memgraph --help``."""
    root = typer.Context(TyperGroup(name=PROGRAM), info_name=PROGRAM, terminal_width=WIDTH)
    parts = ["## Options of every command\n", _block(_common_options())]
    for name in command_names():
        parts.extend(_sections(load_command(name), name, root, 2))
    parts.append(_derived_section())
    return "\n".join(parts)


def _derived_section() -> str:
    """Return the table of the commands that are derived from operations and have no section."""
    rows = [
        f"| `{name}` | {_first_paragraph(declared)} |"
        for name, declared in sorted(derived_commands().items())
    ]
    lines = [
        "## Commands of other operations\n",
        "`--help` of each command shows its parameters and its full description.\n",
        "| command | what it does |",
        "|---|---|",
        *rows,
    ]
    return "\n".join(lines) + "\n"


def _first_paragraph(declared: Operation) -> str:
    text, _, _ = declared.summary.partition("\n\n")
    return " ".join(text.split()).replace("``", "`")


def derived_commands() -> dict[str, Operation]:
    """Return the operations that have no hand-written command, by the names of their commands."""
    names = command_names()
    return {
        declared.command_name: declared
        for declared in operations_of(Operations).values()
        if declared.command_name not in names
    }


def command_paths() -> list[str]:
    """Return all runnable commands; sub-commands are preceded by their group: ``db upgrade``."""
    paths: list[str] = []
    for name in command_names():
        command = load_command(name)
        if isinstance(command, TyperGroup):
            paths.extend(f"{name} {item}" for item in command.commands)
        else:
            paths.append(name)
    return paths


def _sections(command: Command, name: str, parent: Context | None, level: int) -> Iterator[str]:
    context = typer.Context(command, info_name=name, parent=parent, terminal_width=WIDTH)
    yield f"{'#' * level} {context.command_path}\n"
    yield _block(_own_help(command, context))
    if isinstance(command, TyperGroup):
        for key, subcommand in command.commands.items():
            yield from _sections(subcommand, key, context, level + 1)


def _own_help(command: Command, context: Context) -> str:
    """Return the help without the common options, which are documented once."""
    common = {common_parameter.name for common_parameter in common_parameters()}
    all_parameters = command.params
    command.params = [item for item in all_parameters if item.name not in common]
    try:
        return command.get_help(context)
    finally:
        command.params = all_parameters


def _common_options() -> str:
    context = typer.Context(load_command("stats"), info_name=PROGRAM, terminal_width=WIDTH)
    formatter = context.make_formatter()
    formatter.write_dl(
        [
            row
            for common_parameter in common_parameters()
            if (row := _record(common_parameter, context))
        ]
    )
    return formatter.getvalue()


def _record(parameter: Parameter, context: Context) -> tuple[str, str] | None:
    return parameter.get_help_record(context)


def _block(text: str) -> str:
    lines = "\n".join(line.rstrip() for line in text.strip("\n").splitlines())
    return f"```text\n{lines}\n```\n"


if __name__ == "__main__":
    sys.stdout.write(reference())
