"""The webhook: webhook test, and what it did not take: failures, retry."""

from __future__ import annotations

import time
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


def test(context: typer.Context, orchestrator: OrchestratorName) -> CommandResult:
    """Post a signed test event now. Ends with 1 when the receiver does not take it."""
    from memgraph.service.event_delivery import TEST, send_test

    with invocation(context).service() as service:
        chosen = service.orchestrator(orchestrator).settings.memory.webhook
        if not chosen.url:
            raise InvalidContent(_missing(orchestrator))
        before = time.monotonic()
        send_test(chosen, orchestrator, service.clock)
        took_ms = round((time.monotonic() - before) * 1_000)
    topics = ", ".join(sorted(chosen.topics))

    def show(screen: Screen) -> None:
        screen.line(f"{chosen.url} took {TEST} in {took_ms} ms")
        screen.line(f"it is sent: {topics}")

    data = {"url": chosen.url, "type": TEST, "took_ms": took_ms, "topics": sorted(chosen.topics)}
    return CommandResult(data, show)


def failures(
    context: typer.Context,
    orchestrator: OrchestratorName,
    limit: Annotated[int, typer.Option(help="1 to 1000.")] = 100,
) -> CommandResult:
    """List the events that were set aside after six attempts, newest first."""
    with invocation(context).orchestrator(orchestrator) as handle:
        results = _failures(handle, limit)

    def show(screen: Screen) -> None:
        if not results:
            screen.line("nothing was set aside")
            return
        rows = [(str(item.seq), item.topic, moment(item.at), item.error_code) for item in results]
        screen.table(("number", "topic", "at", "error"), rows)
        screen.line(f"send them again: memgraph webhook retry {orchestrator}")

    return CommandResult({"failures": [item.model_dump(mode="json") for item in results]}, show)


def retry(context: typer.Context, orchestrator: OrchestratorName) -> CommandResult:
    """Send again what was set aside, oldest first. Ends with 1 when some is not taken."""
    from memgraph.service.event_delivery import SUBSCRIBER
    from memgraph.service.worker import Worker

    with invocation(context).service() as service:
        handle = service.orchestrator(orchestrator)
        if _failures(handle, 1) and not handle.settings.memory.webhook.url:
            raise InvalidContent(_missing(orchestrator))
        working = Worker(service, names=[orchestrator])
        try:
            count = working.retry(orchestrator, SUBSCRIBER)
        finally:
            working.close()
        remaining = len(_failures(handle, MOST))
    message = f"{count} taken, {remaining} still set aside"
    error = (
        WebhookFailed(f"{remaining} events were not taken; the log says why") if remaining else None
    )
    return CommandResult(
        {"retried": count, "left": remaining}, lambda screen: screen.line(message), error
    )


def _missing(orchestrator: str) -> str:
    return f"{orchestrator} has no webhook: set memory.webhook.url and memory.webhook.secret_file"


def _failures(handle: Orchestrator, limit: int) -> list[EventFailure]:
    from memgraph.service.event_delivery import SUBSCRIBER

    results = handle.events.failures(limit=MOST)
    return [item for item in results if item.subscriber == SUBSCRIBER][:limit]


COMMANDS: dict[str, Any] = {
    "webhook": make_group(
        "webhook",
        "Test the webhook; list and resend what it did not take.",
        {"test": test, "failures": failures, "retry": retry},
    ),
}
