"""The root of the command line: the table of commands, errors and exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from itertools import takewhile
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

import typer
from typer.core import TyperGroup

from memgraph import __version__
from memgraph.errors import (
    Conflict,
    InvalidInput,
    MemgraphError,
    NotFound,
    OrchestratorMissing,
    Unauthenticated,
    without_kind,
)
from memgraph.paths import orchestrator_names, runtime_root
from memgraph.surfaces.cli import commands
from memgraph.surfaces.cli.builder import common_parameters, make_command
from memgraph.surfaces.cli.commands import COMMANDS, GROUPS, MODULES, PLUGIN
from memgraph.surfaces.cli.invocation import CommandResult, Invocation, flush

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from typer._click.core import Command, Context
    from typer._click.formatting import HelpFormatter
    from typer._click.shell_completion import CompletionItem

    from memgraph.model.operation import Operation

PROGRAM = "memgraph"
ENTRY_POINTS = "memgraph.commands"
HELP = """Typed long-term memory for agent orchestrators.

Start with: memgraph init ORC. Every other operation is a command, too; docs/cli.md lists them.
Exit codes: 0 done, 1 refused or a problem was reported, 2 wrong
usage. `memgraph --version` prints the version."""
LISTS: Final = {
    "memory_id": "list",
    "edge_id": "contradictions",
    "session_id": "sessions",
    "receipt_id": "receipts",
    "bulletin_id": "bulletins",
    "workflow_run_id": "receipts",
    "sha256": "files",
}
"""The command that lists the possible values, by the field in the error's details."""
_PROBLEMS: Final = {
    "Field required": "is missing",
    "String should have at least 1 character": "is empty",
}
_INTERRUPTED = 130
_USAGE = 2


class RootGroup(TyperGroup):
    """The root group. It finds commands in the table and imports a command when it is used."""

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002 - typer calls it so
        return command_names()

    def get_command(
        self,
        ctx: Context,  # noqa: ARG002 - typer calls it so
        cmd_name: str,
    ) -> Command | None:
        return load_command(cmd_name) if _is_command(cmd_name) else None

    def format_commands(
        self,
        ctx: Context,  # noqa: ARG002 - typer calls it so
        formatter: HelpFormatter,
    ) -> None:
        plugins = {name: _summary(name) for name in command_names() if name not in COMMANDS}
        for group, lines in (*GROUPS.items(), ("Plugins", plugins)):
            if lines:
                with formatter.section(group):
                    formatter.write_dl([*lines.items()])

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        from typer._click.core import Command
        from typer._click.shell_completion import CompletionItem

        names = [name for name in command_names() if name.startswith(incomplete)]
        results = [CompletionItem(name, help=_summary(name)) for name in names]
        # Skip TyperGroup's implementation, which would load every command for its help.
        return results + Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: Context, args: list[str]
    ) -> tuple[str | None, Command | None, list[str]]:
        if not _is_command(args[0]):
            # typer suggests the nearest of these.
            names: dict[str, Any] = dict.fromkeys([*command_names(), *operations()])
            self.commands = names
        return super().resolve_command(ctx, args)


def command_names() -> list[str]:
    """Return the names of all commands: first the table's, then those of installed plugins."""
    from importlib.metadata import entry_points

    plugins = sorted(entry_point.name for entry_point in entry_points(group=ENTRY_POINTS))
    return [*COMMANDS, *(name for name in plugins if name not in COMMANDS)]


def load_command(name: str) -> Any:
    """Return a command of the table, of a plugin, or of an operation."""
    target: Any
    if name in MODULES:
        module = import_module(f"{commands.__name__}.{MODULES[name]}")
        target = getattr(module, name.replace("-", "_"))
    else:
        plugin = _plugin(name) if name == PLUGIN or name not in COMMANDS else None
        target = _derived(name) if plugin is None else plugin.load()
    return make_command(target, name) if isinstance(target, FunctionType) else target


def _is_command(name: str) -> bool:
    return name in COMMANDS or _plugin(name) is not None or name in operations()


def _plugin(name: str) -> EntryPoint | None:
    # This import takes 30 ms, which most commands do not need to spend.
    from importlib.metadata import entry_points

    return next(iter(entry_points(group=ENTRY_POINTS, name=name)), None)


def operations() -> dict[str, Operation]:
    """Return the operations by the names of their commands, such as ``retract-source``."""
    # Loading the declarations is slow, and loading the library behind them is slower. Only commands
    # that are not in the table need the declarations, and only derived ones need the library.
    from memgraph.model.operation import operations_of
    from memgraph.operations.groups import Operations

    declared = operations_of(Operations).values()
    return {item.command_name: item for item in declared if item.command_name}


def _derived(name: str) -> Any:
    from memgraph.surfaces.cli.commands.derived import CUSTOM
    from memgraph.surfaces.cli.operations import Custom, command_of

    custom = CUSTOM.get(name, Custom())
    return command_of(custom.method or operations()[name].function, custom)


def _summary(name: str) -> str:
    """Return a command's line in ``memgraph --help``; a plugin must be loaded for it."""
    return COMMANDS.get(name) or load_command(name).help or ""


def root_command() -> TyperGroup:
    """Return the command ``memgraph`` itself."""
    from typer.main import get_install_completion_arguments

    return RootGroup(
        name=PROGRAM,
        help=HELP,
        no_args_is_help=True,
        rich_markup_mode=None,
        params=[*common_parameters(), *get_install_completion_arguments()],
        callback=None,
    )


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; see ``memgraph.surfaces.cli.main``."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    # An error in the options is reported in the requested format, too.
    invocation = Invocation(as_json="--json" in [*takewhile("--".__ne__, words)])
    # Characters that the terminal's encoding lacks are printed as escapes.
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    flush()
    try:
        if [word for word in words if word != "--json"] == ["--version"]:
            text = f"{PROGRAM} {__version__}"
            shown = CommandResult({"version": __version__}, lambda screen: screen.line(text))
            return invocation.answer(shown)
        code = root_command().main(words, PROGRAM, standalone_mode=False, obj=invocation)
    except MemgraphError as error:
        return _refused(invocation, error)
    except typer.TyperException as error:
        return _usage(invocation, error)
    except (typer.Abort, KeyboardInterrupt):
        code = _INTERRUPTED
    except OSError as error:
        return _system(invocation, error)
    if code == _INTERRUPTED:
        problem = {"code": "cli.interrupted", "message": "interrupted", "details": {}}
        return invocation.refuse(problem, code=_INTERRUPTED)
    return int(code or 0)


def _refused(invocation: Invocation, error: MemgraphError) -> int:
    problem = error.as_dict()
    if not invocation.as_json:
        problem["message"] = _message(invocation, error)
    # Subclasses of InvalidInput are about settings or the content of files.
    return invocation.refuse(problem, code=_USAGE if type(error) is InvalidInput else 1)


def _message(invocation: Invocation, error: MemgraphError) -> str:
    """Return the message of an error with what to do next, as far as that is known."""
    command, name = invocation.command, invocation.named
    if error.code == "orchestrator.exists":
        return f"{error.message}. Choose another name, or continue with this one: --exist-ok"
    if error.code == OrchestratorMissing.code and invocation.server_url is None:
        # The name or the root may be wrong.
        root = runtime_root(invocation.root)
        names = orchestrator_names(root)
        return f"{error.message}. {root} has {', '.join(names[:10]) or 'no orchestrator'}"
    if isinstance(error, Unauthenticated):
        return f"{error.message}; name a key with --key-file or MEMGRAPH_KEY"
    if error.code == Conflict.code and "path" in error.details and command in ("backup", "export"):
        return f"{error.message}. Name another file, or replace it: --force"
    if isinstance(error, NotFound) and name is not None:
        lists = LISTS | {"name": "sources" if "source" in command else "entities"}
        listing = next((lists[detail] for detail in error.details if detail in lists), None)
        return f"{error.message}. Try: memgraph {listing} {name}" if listing else error.message
    if type(error) is InvalidInput and command:
        return f"{_in_options(error, command)}. Try: {PROGRAM} {command} --help"
    return error.message


def _in_options(error: InvalidInput, command: str) -> str:
    """Return the message of an error, with fields named as the options of the command."""
    first, *rest = command.split()
    found = load_command(first)
    for name in rest:
        found = found.commands.get(name, found) if isinstance(found, TyperGroup) else found
    typed = {param.name: param for param in found.params}

    def shown(name: str) -> str:
        param = typed.get(name)
        option = name if param is None else max(param.opts, key=len)
        return str(option if param is None or option[0] == "-" else param.metavar or option)

    field, fields = error.details.get("field", ""), error.details.get("fields", ())
    messages = []
    for item in error.details.get("problems", ())[:5]:
        problem = _PROBLEMS.get(item["problem"], item["problem"])
        messages.append(
            problem if item["field"] == "(all)" else f"{shown(item['field'])}: {problem}"
        )
    if not messages:
        begins = field and error.message.startswith(f"{field}: ")
        message = f"{shown(field)}{error.message[len(field) :]}" if begins else error.message
        messages.append(message.replace(", ".join(fields), ", ".join(map(shown, fields))))
    return "; ".join(messages)


def _usage(invocation: Invocation, error: typer.TyperException) -> int:
    context = getattr(error, "ctx", None)
    # typer puts every choice on its own indented line; join them.
    message = " ".join(without_kind(error.format_message()).split())
    details = {}
    if type(error).__name__ == "NoArgsIsHelpError":
        # The message of this error is the help itself.
        if not invocation.as_json:
            sys.stderr.write(error.format_message() + "\n")
            return _USAGE
        message = "Missing command."
    elif context is not None:
        details = {"usage": context.get_usage().removeprefix("Usage: ")}
        if not invocation.as_json:
            end = "" if message.endswith((".", "?")) else "."
            required = [
                f"{option.opts[-1]} {option.metavar or option.type.name.upper()}"
                for option in context.command.params
                if option.required and option.param_type_name == "option"
            ]
            usage = " ".join(details["usage"].replace(" [OPTIONS]", "").split() + required)
            message = f"{message}{end} Try: {usage}, or {context.command_path} --help"
    problem = {"code": "cli.usage", "message": message, "details": details}
    return invocation.refuse(problem, code=_USAGE)


def _system(invocation: Invocation, error: OSError) -> int:
    """Report an error of the operating system: a folder without write permission, a full disk."""
    where = {} if error.filename is None else {"path": str(error.filename)}
    message = ": ".join((error.strerror or type(error).__name__, *where.values()))
    if not where:
        # Without a file name it is standard output: do not flush it again when the process ends.
        with suppress(OSError):
            sys.stdout.close()
    return invocation.refuse({"code": "cli.system", "message": message, "details": where})
