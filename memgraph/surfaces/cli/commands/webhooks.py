"""What a webhook did not take: webhook failures, retry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from memgraph.errors import WebhookFailed
from memgraph.surfaces.cli.builder import OrchestratorName, make_group
from memgraph.surfaces.cli.formats import moment
from memgraph.surfaces.cli.invocation import CommandResult, InvalidContent, invocation

if TYPE_CHECKING:
    from memgraph.model.events import EventFailure
    from memgraph.operations.orchestrator import Orchestrator
    from memgraph.surfaces.cli.screen import Screen

MOST = 1_000


def failures(
    context: typer.Context,
    orchestrator: OrchestratorName,
    limit: Annotated[int, typer.Option(help="1 to 1000.")] = 100,
) -> CommandResult:
    """List the events that were put aside after six attempts, newest first."""
    with invocation(context).orchestrator(orchestrator) as handle:
        found = _failures(handle, limit)

    def show(screen: Screen) -> None:
        if not found:
            screen.line("nothing was put aside")
            return
        rows = [(str(each.seq), each.topic, moment(each.at), each.error_code) for each in found]
        screen.table(("number", "topic", "at", "error"), rows)
        screen.line(f"send them again: memgraph webhook retry {orchestrator}")

    return CommandResult({"failures": [each.model_dump(mode="json") for each in found]}, show)


def retry(context: typer.Context, orchestrator: OrchestratorName) -> CommandResult:
    """Send again what was put aside, oldest first. Ends with 1 when some is not taken."""
    from memgraph.service.webhook import SUBSCRIBER
    from memgraph.service.worker import Worker

    with invocation(context).service() as service:
        handle = service.orchestrator(orchestrator)
        if _failures(handle, 1) and not handle.settings.memory.webhook.url:
            raise InvalidContent(f"{orchestrator} has no webhook: set memory.webhook.url")
        working = Worker(service, names=[orchestrator])
        try:
            taken = working.retry(orchestrator, SUBSCRIBER)
        finally:
            working.close()
        left = len(_failures(handle, MOST))
    told = f"{taken} taken, {left} still put aside"
    error = WebhookFailed(f"{left} events were not taken; the log says why") if left else None
    return CommandResult({"retried": taken, "left": left}, lambda screen: screen.line(told), error)


def _failures(handle: Orchestrator, limit: int) -> list[EventFailure]:
    from memgraph.service.webhook import SUBSCRIBER

    found = handle.event_failures(limit=MOST)
    return [each for each in found if each.subscriber == SUBSCRIBER][:limit]


COMMANDS: dict[str, Any] = {
    "webhook": make_group(
        "webhook",
        "List and resend what a webhook did not take.",
        {"failures": failures, "retry": retry},
    ),
}
