"""Generate the reference of all commands: ``python -m memgraph.surfaces.cli.reference``.

The output is part of docs/cli.md; a test compares the two.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer
from typer.core import TyperGroup

from memgraph.surfaces.cli.app import PROGRAM, command_names, load_command, operations
from memgraph.surfaces.cli.builder import common_parameters
from memgraph.surfaces.cli.commands import COMMANDS, OPERATION

if TYPE_CHECKING:
    from typer._click.core import Command, Context

    from memgraph.model.operation import Operation

WIDTH = 88


def reference() -> str:
    """Return a heading and the help text of every command, in the order of ``memgraph --help``."""
    root = typer.Context(TyperGroup(name=PROGRAM), info_name=PROGRAM, terminal_width=WIDTH)
    parts = ["## Options of every command\n", _block(_common_options())]
    for name in command_names():
        parts.extend(_sections(load_command(name), name, root, 2))
    parts.append(_unlisted_section())
    return "\n".join(part for part in parts if part)


def _unlisted_section() -> str:
    """Return the table of the derived commands that the table of commands does not list."""
    rows = [
        f"| `{name}` | {_first_paragraph(declared)} |"
        for name, declared in sorted(derived_commands().items())
        if name not in COMMANDS
    ]
    if not rows:
        return ""
    head = [
        "## Commands of other operations\n",
        "`--help` of each shows its options.\n",
        "| command | what it does |",
        "|---|---|",
    ]
    return "\n".join([*head, *rows]) + "\n"


def _first_paragraph(declared: Operation) -> str:
    text, _, _ = declared.summary.partition("\n\n")
    return " ".join(text.split()).replace("``", "`").replace("Return ", "Show ", 1)


def derived_commands() -> dict[str, Operation]:
    """Return the operations whose commands are derived, by the names of the commands."""
    listed = {name: entry.module for name, entry in COMMANDS.items()}
    return {
        name: declared
        for name, declared in operations().items()
        if listed.get(name, OPERATION) == OPERATION
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
            if (row := common_parameter.get_help_record(context))
        ]
    )
    return formatter.getvalue()


def _block(text: str) -> str:
    lines = "\n".join(line.rstrip() for line in text.strip("\n").splitlines())
    return f"```text\n{lines}\n```\n"


if __name__ == "__main__":
    sys.stdout.write(reference())
