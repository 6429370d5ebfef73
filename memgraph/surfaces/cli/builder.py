"""Build commands and groups from functions, each with the common options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from typing import TYPE_CHECKING, Annotated, Any, cast, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from memgraph.surfaces.cli.invocation import Invocation, invocation

if TYPE_CHECKING:
    from typer._click.core import Context, Parameter

Function = Callable[..., Any]
"""Returns a ``CommandResult`` or None."""
OrchestratorName = Annotated[
    str, typer.Argument(metavar="ORC", help="The orchestrator's name.", show_default=False)
]


def make_command(function: Function, name: str) -> TyperCommand:
    """Return a command that runs ``function`` and prints its report.

    The docstring of the function is the help, and its annotated parameters are arguments and
    options. The first parameter is the ``typer.Context``. A function that runs until it is stopped
    may return None, if it printed its report at the start.
    """
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

    @wraps(function)
    def run(*args: Any, **values: Any) -> int:
        context: typer.Context = values["context"]
        call = invocation(context)
        call.command = context.command_path.partition(" ")[2]
        report = function(*args, **values)
        return 0 if report is None else call.answer(report)

    app.command(name, cls=_Command)(run)
    command = cast(TyperCommand, get_command(app))
    # The line in the help of a group, which would else be truncated.
    command.short_help = " ".join((command.help or "").partition("\n\n")[0].split())
    command.params.extend(common_parameters())
    return command


def make_group(name: str, text: str, functions: Mapping[str, Function]) -> TyperGroup:
    """Return a command with subcommands."""
    return TyperGroup(
        name=name,
        help=text,
        commands={item: make_command(function, item) for item, function in functions.items()},
        no_args_is_help=True,
        rich_markup_mode=None,
        params=[*common_parameters()],
    )


class _Command(TyperCommand):
    """A command that shows a required argument as ``ORC``, not as ``{ORC}``."""

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        return [
            item.replace("{", "").replace("}", "") for item in super().collect_usage_pieces(ctx)
        ]


@cache
def common_parameters() -> Sequence[Parameter]:
    """Return the options that every command accepts, before and after its name."""
    hints = get_type_hints(Invocation, include_extras=True)
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=hint, default=None)
        for name, hint in hints.items()
        if get_origin(hint) is Annotated
    ]

    def common(**_: Any) -> None:
        """Declare the options."""

    common.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    common.__annotations__ = {item.name: item.annotation for item in options}
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command("common")(common)
    parameters = get_command(app).params
    for parameter in parameters:
        # The values are stored in the invocation and not passed to the command's function.
        parameter.expose_value = False
        parameter.callback = _store_value
    return parameters


def _store_value(context: Context, parameter: Parameter, value: Any) -> Any:
    if parameter.name is not None and not context.resilient_parsing:
        invocation(context).set(parameter.name, value)
    return value
