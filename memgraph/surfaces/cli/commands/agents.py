"""The tools of a language model, from the command line: tools, call."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from memgraph.errors import ToolRefused
from memgraph.surfaces.cli.builder import OrchestratorName, make_command
from memgraph.surfaces.cli.invocation import CommandResult, invocation
from memgraph.surfaces.cli.screen import Screen

ReadOnly = Annotated[bool, typer.Option("--read-only", help="Only tools that change nothing.")]
Maintenance = Annotated[
    bool,
    typer.Option("--maintenance", help="With consolidate, which works on all there is."),
]


def tools(
    context: typer.Context,
    orchestrator: OrchestratorName,
    read_only: ReadOnly = False,
    maintenance: Maintenance = False,
) -> CommandResult:
    """Print the tools of a language model, in OpenAI's format.

    With --json the schemas too, as the `tools` of a request take them.
    """
    from memgraph.operations.tools.tools import tools_for

    with invocation(context).orchestrator(orchestrator) as handle:
        results = tools_for(handle, read_only=read_only, maintenance=maintenance)
    rows = [(item["function"]["name"], item["function"]["description"]) for item in results]
    return CommandResult({"tools": results}, lambda screen: screen.fields(rows))


def call(
    context: typer.Context,
    orchestrator: OrchestratorName,
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="Its name.")],
    arguments: Annotated[
        str, typer.Argument(metavar="JSON", help="Its arguments, one JSON object.")
    ] = "{}",
    read_only: ReadOnly = False,
    maintenance: Maintenance = False,
) -> CommandResult:
    """Run one call as a language model would, and print the answer that the model would get.

    Ends with 1 when the answer is an error. The journal names --actor for changes.
    """
    from memgraph.operations.tools.tools import call_tool

    with invocation(context).orchestrator(orchestrator) as handle:
        answer = call_tool(handle, tool, arguments, read_only=read_only, maintenance=maintenance)
    text = json.dumps(answer, ensure_ascii=False, indent=2)

    def show(screen: Screen) -> None:
        screen.raw_lines(text + "\n")

    refused = answer.get("error")
    return CommandResult({"answer": answer}, show, None if refused is None else _refusal(refused))


def _refusal(details: dict[str, str]) -> ToolRefused:
    return ToolRefused(
        f"{details['message']}; memgraph tools lists the tools", cause=details["code"]
    )


COMMANDS: dict[str, Any] = {
    "tools": make_command(tools, "tools"),
    "call": make_command(call, "call"),
}
