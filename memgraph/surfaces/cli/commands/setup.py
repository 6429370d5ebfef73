"""Commands for orchestrators themselves: init, health, restore, migrate-store, config."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memgraph.errors import MemgraphError, MemoryDisabled, OrchestratorExists
from memgraph.surfaces.cli.builder import OrchestratorName, make_group
from memgraph.surfaces.cli.invocation import CommandResult, invocation, value
from memgraph.surfaces.cli.render import show_result
from memgraph.surfaces.cli.screen import Screen, note

if TYPE_CHECKING:
    from memgraph.config.schema import LanguageModelSettings
    from memgraph.providers.litellm_chat import ModelCheck

NO_MODEL = (
    "no language model is configured, and none is required; to add one, write in {file}:\n"
    '[memory.llm]\nprovider = "litellm/openai/gpt-4o-mini"\n'
)
SomeOrchestrator = Annotated[
    str | None,
    typer.Argument(metavar="ORC", help="The orchestrator's name.", show_default=False),
]


def init(
    context: typer.Context,
    orchestrator: OrchestratorName,
    exist_ok: Annotated[
        bool, typer.Option("--exist-ok", help="Succeed if it already exists.")
    ] = False,
) -> CommandResult:
    """Create an orchestrator: its folders and an empty database.

    A damaged or incomplete orchestrator is never recreated.
    """
    from memgraph.paths import OrchestratorPaths

    call = invocation(context)
    data = {"orchestrator": orchestrator, "created": True, "memory": None, "ingest": None}
    if call.server_url is not None:
        # The folders are on the server.
        with call.client() as client:
            try:
                client.create(orchestrator)
            except OrchestratorExists:
                if not exist_ok:
                    raise
                data["created"] = False
        return CommandResult(data)
    with call.service() as service:
        paths = OrchestratorPaths(service.root, orchestrator)
        data |= {"memory": str(paths.memory), "ingest": str(paths.ingest)}
        data["created"] = not (exist_ok and paths.memory.exists())
        if data["created"]:
            service.create(orchestrator)
    return CommandResult(data)


def health(context: typer.Context, orchestrator: SomeOrchestrator = None) -> CommandResult:
    """Report whether the memory of one orchestrator, or of all, works, and where it is stored.

    A damaged memory is disabled and reported; the others keep working. Exits with 1 if any is
    disabled.
    """
    call = invocation(context)
    results: list[dict[str, Any]] = []
    if call.server_url is not None:
        with call.client() as client:
            names = client.orchestrators() if orchestrator is None else [orchestrator]
            results = [{**client.health(name), "store": None} for name in names]
    else:
        with call.service() as service:
            for name in service.orchestrators() if orchestrator is None else [orchestrator]:
                # An invalid or unknown name is an error, not a bad state.
                service.orchestrator(name)
                store = service.settings(name).memory.storage.url or service.paths(name).database
                results.append({**service.health(name), "store": str(store)})
    disabled = [item for item in results if item["status"] != "ready"]
    refusal = None
    if disabled:
        first, *more = disabled
        others = f" and {len(more)} more" if more else ""
        refusal = MemoryDisabled(f"{first['orchestrator']}{others} disabled: {first['message']}")

    def show(screen: Screen) -> None:
        from memgraph.service.readiness import REMEDIES

        show_result(screen, results)
        codes = {code for item in results for code in item.get("degraded", ())}
        for code in sorted(codes & REMEDIES.keys()):
            screen.line(f"{code}: {REMEDIES[code]}")

    return CommandResult({"orchestrators": results}, show, refusal)


def restore(
    context: typer.Context,
    orchestrator: OrchestratorName,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file made by backup.")],
    reason: Annotated[str, value("TEXT", "Why, for the journal.")] = "restored a backup",
    new_name: Annotated[
        str | None,
        value("NAME", "Restore as a new orchestrator with this name; ORC is unchanged.", "--as"),
    ] = None,
    accept_findings: Annotated[
        bool, typer.Option("--accept-findings", help="Accept findings of the audit, except damage.")
    ] = False,
) -> CommandResult:
    """Restore a database from a backup; a damaged backup is refused.

    The old files are moved to memory/replaced/; only an erasure removes them.
    """
    from memgraph.operations.maintenance.maintenance import restore as put_back

    call = invocation(context)
    name = orchestrator if new_name is None else new_name
    with call.service() as service:
        # The settings that will open it; the other orchestrator's config.toml does not apply.
        chosen = service.settings(name).memory
        done = put_back(
            service.paths(name),
            file,
            clock=service.clock,
            actor=call.actor or "user",
            reason=reason,
            origin=None if new_name is None else orchestrator,
            origin_url=service.settings(orchestrator).memory.storage.url,
            accept_findings=accept_findings,
            url=chosen.storage.url,
        )

    return CommandResult(done.model_dump(mode="json"), lambda screen: show_result(screen, done))


def migrate_store(
    context: typer.Context,
    orchestrator: OrchestratorName,
    to: Annotated[str, typer.Option(metavar="URL|file", help="A server's URL, or `file`.")],
) -> CommandResult:
    """Move an orchestrator into a file or to a server, and verify it there.

    Reads continue; writes and erasures wait until it has ended. The setting is written to the
    orchestrator's config.toml. The old store is kept. If the move is interrupted, the old store
    stays in use: run the command again.
    """
    from memgraph.operations.maintenance.move import move

    call = invocation(context)
    with call.service() as service:
        service.orchestrator(orchestrator)
        chosen = service.settings(orchestrator).memory
        done = move(
            service.paths(orchestrator),
            "" if to == "file" else to,
            source=chosen.storage.url,
            clock=service.clock,
        )

    if done.left is not None and done.source and not call.as_json:
        note("erasures do not cover the old schema: drop it when you no longer need it")
    return CommandResult(done.model_dump(mode="json"), lambda screen: show_result(screen, done))


def show_config(
    context: typer.Context,
    orchestrator: SomeOrchestrator = None,
    changed: Annotated[
        bool, typer.Option("--changed", help="Leave out settings with their default.")
    ] = False,
) -> CommandResult:
    """Show every setting, its current value, and where it was set."""
    from memgraph.config import describe
    from memgraph.config.loader import DEFAULT_ORIGIN

    call = invocation(context)
    with call.service() as service:
        if orchestrator is not None:
            service.orchestrator(orchestrator)
        settings = [
            {
                "key": item.key,
                "value": list(item.value) if isinstance(item.value, tuple) else item.value,
                "origin": item.origin,
            }
            for item in describe(service.settings(orchestrator))
            if not changed or item.origin != DEFAULT_ORIGIN
        ]
        root = str(service.root)

    def show(screen: Screen) -> None:
        for item in settings:
            origin = "" if item["origin"] == DEFAULT_ORIGIN else f"  ({item['origin']})"
            screen.line(f"{item['key']} = {json.dumps(item['value'])}{origin}")
        if not settings:
            screen.line("every setting has its default")

    return CommandResult({"root": root, "orchestrator": orchestrator, "settings": settings}, show)


def check_config(context: typer.Context, orchestrator: SomeOrchestrator = None) -> CommandResult:
    """Check the settings of one orchestrator, or of the root and all its orchestrators.

    If a language model is configured, make one call and report whether it answers, with JSON of
    the requested schema. Exits with 1 if a setting is wrong, and names the key and the file or
    variable, or if a model fails.
    """
    call = invocation(context)
    with call.service() as service:
        if orchestrator is not None:
            service.orchestrator(orchestrator)
        names = [None, *service.orchestrators()] if orchestrator is None else [orchestrator]
        wrong: list[tuple[str | None, MemgraphError]] = []
        models: dict[LanguageModelSettings, None] = {}
        for name in names:
            try:
                models[service.settings(name).memory.llm] = None
            except MemgraphError as error:
                wrong.append((name, error))
        configured = [chosen for chosen in models if chosen.provider != "none"]
        checks = [_checked(chosen, service.environ) for chosen in configured]
    errors = [error for _, error in wrong] + [each.error for each in checks if each.error]
    refusal = type(errors[0])(errors[0].message) if errors else None
    rows = [each.as_dict() for each in checks]
    problems = [{"orchestrator": name, **error.as_dict()} for name, error in wrong]
    data = {"checked": len(names), "problems": problems, "models": rows}

    def show(screen: Screen) -> None:
        messages = {name: error.message for name, error in wrong}
        for name in names:
            place = "the root" if name is None else f"orchestrator {name}"
            screen.line(f"{place}: {messages.get(name, 'ok')}")
        if configured:
            # The message is the command's error, below the table.
            codes = [{"error": row["error"] and row["error"]["code"]} for row in rows]
            show_result(screen, [row | code for row, code in zip(rows, codes, strict=True)])
        else:
            screen.raw_lines(NO_MODEL.format(file=service.root / "memgraph.toml"))

    return CommandResult(data, show, refusal)


def _checked(chosen: LanguageModelSettings, environ: Mapping[str, str] | None) -> ModelCheck:
    """Make one call of a configured model, without retries."""
    from memgraph.providers.completion import completion_provider
    from memgraph.providers.litellm_chat import check_completion
    from memgraph.providers.options import options_of

    options = options_of(chosen, environ, chosen.timeout_s)
    options["retries"] = 0
    return check_completion(completion_provider(chosen.provider, **options))


config = make_group(
    "config",
    "Show or check the settings.",
    {"show": show_config, "check": check_config},
)
