"""The root of the command line: the table of commands, errors and exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Final

import typer
from typer.core import TyperGroup

from memgraph import __version__
from memgraph.errors import InvalidInput, MemgraphError, NotFound, OrchestratorMissing, without_kind
from memgraph.paths import orchestrator_names, runtime_root
from memgraph.surfaces.cli import commands
from memgraph.surfaces.cli.builder import common_parameters, make_command
from memgraph.surfaces.cli.commands import COMMANDS, GROUPS, PLUGIN
from memgraph.surfaces.cli.invocation import Invocation, flush

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from typer._click.core import Command, Context
    from typer._click.formatting import HelpFormatter
    from typer._click.shell_completion import CompletionItem

    from memgraph.model.operation import Operation


# Hints for a person after an error.


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
REMEDIES: Final = {
    "orchestrator.exists": "Choose another name, or continue with this one: --exist-ok",
}
"""The remedy for an error whose message does not state it, by error code."""
EXAMPLES: Final = {
    "recall": 'memgraph recall ORC "your question"',
    "remember": 'memgraph remember ORC "what to remember"',
    "say": 'memgraph say ORC "what was said" --session-id monday',
    "ingest": "memgraph ingest ORC notes/ --dry-run",
    "key create": "memgraph key create desk --orchestrator ORC --permission read",
    "restore": "memgraph restore ORC FILE",
    "migrate-store": "memgraph migrate-store ORC --to URL|file",
    "mcp": "memgraph mcp --orchestrator ORC",
}
"""An example of a command line, by command; for other commands --help is suggested."""
_PROBLEMS: Final = {
    "Field required": "is missing",
    "String should have at least 1 character": "is empty",
}


def in_options(error: InvalidInput, command: str) -> str:
    """Return the message of an error, with fields named as the options of the command."""
    problems = error.details.get("problems")
    if not problems:
        return f"{error.message}. {_usage_hint(command)}"
    options = _options(command)
    messages = []
    for item in problems[:5]:
        field, problem = item["field"], item["problem"]
        name = options.get(field, field)
        problem = _PROBLEMS.get(problem, problem)
        messages.append(problem if field == "(all)" else f"{name}: {problem}")
    return f"{'; '.join(messages)}. {_usage_hint(command)}"


def _usage_hint(command: str) -> str:
    return f"Try: {EXAMPLES.get(command, ' '.join(f'{PROGRAM} {command} --help'.split()))}"


def _options(command: str) -> dict[str, str]:
    """Return the options and arguments of a command as they are typed, by parameter name."""
    first, *rest = command.split()
    result = load_command(first)
    for name in rest:
        if isinstance(result, TyperGroup):
            result = result.commands[name]
    names = {param.name or "": (max(param.opts, key=len), param) for param in result.params}
    return {
        name: typed if typed.startswith("-") else str(parameter.metavar or typed)
        for name, (typed, parameter) in names.items()
        if (parameter.metavar or typed) is not None
    }


def next_step(error: MemgraphError, command: str, orchestrator: str | None) -> str | None:
    """Return a hint after an error: a command line or a sentence, or None if there is no hint.

    Args:
        command: the command that failed, such as ``source show``.
        orchestrator: the name of the orchestrator in the command line, or None.
    """
    if error.code in REMEDIES:
        return REMEDIES[error.code]
    if not isinstance(error, NotFound) or orchestrator is None:
        return None
    list_command = next((LISTS[detail] for detail in error.details if detail in LISTS), None)
    if list_command is None and "name" in error.details:
        list_command = "sources" if "source" in command else "entities"
    return None if list_command is None else f"Try: memgraph {list_command} {orchestrator}"


PROGRAM = "memgraph"
USAGE_CODE = "cli.usage"
SYSTEM_CODE = "cli.system"
INTERRUPTED_CODE = "cli.interrupted"
MISSING_CODE = "cli.command_missing"
ENTRY_POINTS = "memgraph.commands"
_INTERRUPTED = 130
_USAGE = 2
_MOST_NAMES = 10

HELP = """Typed long-term memory for agent orchestrators.

Start with: memgraph init ORC. Every other operation is a command, too; docs/cli.md lists them.
Exit codes: 0 done, 1 refused or a problem was reported, 2 wrong
usage. `memgraph --version` prints the version."""


class CommandMissing(MemgraphError):
    """A command of the table whose package is not installed."""

    code = MISSING_CODE


class RootGroup(TyperGroup):
    """The root group. It finds commands in the table and imports a command when it is used."""

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002 - typer calls it so
        return command_names()

    def get_command(
        self,
        ctx: Context,  # noqa: ARG002 - typer calls it so
        cmd_name: str,
    ) -> Command | None:
        if cmd_name in COMMANDS or _plugin(cmd_name) is not None:
            return load_command(cmd_name)
        return load_command(cmd_name) if cmd_name in operations() else None

    def format_commands(
        self,
        ctx: Context,  # noqa: ARG002 - typer calls it so
        formatter: HelpFormatter,
    ) -> None:
        plugins = [name for name in command_names() if name not in COMMANDS]
        for group, names in (*GROUPS.items(), ("Plugins", plugins)):
            if names:
                with formatter.section(group):
                    formatter.write_dl([(name, _summary(name)) for name in names])

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        from typer._click.core import Command
        from typer._click.shell_completion import CompletionItem

        results = [
            CompletionItem(name, help=_summary(name))
            for name in command_names()
            if name.startswith(incomplete)
        ]
        # Skip TyperGroup's implementation, which would load every command for its help.
        return results + Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: Context, args: list[str]
    ) -> tuple[str | None, Command | None, list[str]]:
        name = args[0]
        unknown = name not in COMMANDS and _plugin(name) is None and name not in operations()
        if unknown and not name.startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches  # for this one message

            near = get_close_matches(name, {*command_names(), *operations()}, cutoff=0.7)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            ctx.fail(f"No such command {name!r}.{hint}")
        return super().resolve_command(ctx, args)


def command_names() -> list[str]:
    """Return the names of all commands: first the table's, then those of installed plugins."""
    from importlib.metadata import entry_points

    plugins = sorted(entry_point.name for entry_point in entry_points(group=ENTRY_POINTS))
    return [*COMMANDS, *(name for name in plugins if name not in COMMANDS)]


def load_command(name: str) -> Command:
    """Return a command of the table or of a plugin.

    Raises:
        CommandMissing: the package that provides the command is not installed.
    """
    listed = COMMANDS.get(name)
    if listed is not None and listed.module:
        command: Command = import_module(f"{commands.__name__}.{listed.module}").COMMANDS[name]
        return command
    plugin = _plugin(name) if listed is None or listed.module is PLUGIN else None
    if plugin is None:
        declared = operations().get(name)
        if declared is not None or listed is not None:
            return _derived(declared, name)
        raise CommandMissing(f"the command {name!r} cannot be loaded: reinstall memgraph")
    target = plugin.load()
    if isinstance(target, FunctionType):
        return make_command(target, name)
    group: Command = target
    return group


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


def _derived(declared: Operation | None, name: str) -> Command:
    """Return the command of an operation, or of the method that ``CUSTOM`` names."""
    from memgraph.surfaces.cli.commands.derived import CUSTOM
    from memgraph.surfaces.cli.operations import command_of

    custom = dict(CUSTOM.get(name, {}))
    if declared is not None:
        custom.setdefault("method", declared.function)
    return make_command(command_of(**custom), name)


def _summary(name: str) -> str:
    """Return a command's line in ``memgraph --help``; a plugin must be loaded for it."""
    if name in COMMANDS:
        return COMMANDS[name].help
    return load_command(name).help or ""


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
    options = words[: words.index("--")] if "--" in words else words
    # An error in the options is reported in the requested format, too.
    invocation = Invocation(as_json="--json" in options)
    _prepare_streams()
    try:
        if words == ["--version"]:
            sys.stdout.write(f"{PROGRAM} {__version__}\n")
            flush()
            return 0
        code = root_command().main(words, PROGRAM, standalone_mode=False, obj=invocation)
    except MemgraphError as error:
        return _refused(invocation, error)
    except typer.TyperException as error:
        return _usage(invocation, error)
    except (typer.Abort, KeyboardInterrupt):
        return _interrupted(invocation)
    except OSError as error:
        return _system(invocation, error)
    if code == _INTERRUPTED:
        return _interrupted(invocation)
    return int(code or 0)


def _refused(invocation: Invocation, error: MemgraphError) -> int:
    problem = error.as_dict()
    step = next_step(error, invocation.command, invocation.named)
    if error.code == OrchestratorMissing.code and invocation.server_url is None:
        step = _existing_orchestrators(invocation.root)
    if step is not None and not invocation.as_json:
        problem["message"] = f"{error.message}. {step}"
    elif type(error) is InvalidInput and invocation.command and not invocation.as_json:
        problem["message"] = in_options(error, invocation.command)
    return invocation.refuse(problem, code=_exit_code(error))


def _existing_orchestrators(folder: str | None) -> str:
    """Return a hint with the existing orchestrators: the name or the root may be wrong."""
    root = runtime_root(folder)
    names = orchestrator_names(root)
    listed = ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")
    return f"{root} has {listed or 'no orchestrator'}"


def _exit_code(error: MemgraphError) -> int:
    """Return 2 if a value on the command line is invalid, or else 1."""
    # Subclasses of InvalidInput are about settings or the content of files.
    return _USAGE if type(error) is InvalidInput else 1


def _usage(invocation: Invocation, error: typer.TyperException) -> int:
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        # The message of this error is the help itself.
        if not invocation.as_json:
            sys.stderr.write(error.format_message() + "\n")
            return _USAGE
        return invocation.refuse(
            {"code": USAGE_CODE, "message": "Missing command.", "details": {}}, code=_USAGE
        )
    # typer puts every choice on its own indented line; join them.
    message = " ".join(without_kind(error.format_message()).split())
    details = {}
    if context is not None:
        details = {"usage": context.get_usage().removeprefix("Usage: ")}
        if not invocation.as_json:
            end = "" if message.endswith((".", "?")) else "."
            message = (
                f"{message}{end} {_usage_hint(context.command_path.removeprefix(PROGRAM).strip())}"
            )
    return invocation.refuse(
        {"code": USAGE_CODE, "message": message, "details": details}, code=_USAGE
    )


def _system(invocation: Invocation, error: OSError) -> int:
    """Report an error of the operating system: a folder without write permission, a full disk."""
    where = {} if error.filename is None else {"path": str(error.filename)}
    message = error.strerror or type(error).__name__
    if where:
        message = f"{message}: {where['path']}"
    else:
        # Without a file name it is standard output: do not flush it again when the process ends.
        with suppress(OSError):
            sys.stdout.close()
    return invocation.refuse({"code": SYSTEM_CODE, "message": message, "details": where})


def _interrupted(invocation: Invocation) -> int:
    error = {"code": INTERRUPTED_CODE, "message": "interrupted", "details": {}}
    return invocation.refuse(error, code=_INTERRUPTED)


def _prepare_streams() -> None:
    """Print characters that the terminal's encoding lacks as escapes, instead of raising."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    flush()
