"""Console pages for ingested files and for jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from anyio.to_thread import run_sync
from starlette.responses import JSONResponse, Response

from memgraph.model.access import Permission
from memgraph.model.jobs import JobPlan, JobRun
from memgraph.model.remote import UploadResult
from memgraph.model.values import Memory
from memgraph.operations.ingestion.uploads import UploadDraft, draft
from memgraph.operations.orchestrator import Orchestrator
from memgraph.service.sanitizer import without_root
from memgraph.surfaces.asgi import UNTIMED
from memgraph.surfaces.uploads import taken
from memgraph.surfaces.web.requests import ConsolePage, UploadPage, Visit

FILES: Final = 50
ITEMS_SHOWN: Final = 200
"""The maximum number of a manifest's items on a page; further items are only counted."""


def files(visit: Visit) -> Response:
    """Show processed files, latest first, and the drop area for uploads."""
    orc = visit.enter()
    after = visit.query("after") or None
    page = orc.ingestion.list(limit=FILES, after=after)
    return visit.show(
        "ingest.html",
        page=page,
        may_send=visit.may(Permission.WRITE) and orc.settings.memory.ingest.enabled,
        max_mb=orc.settings.memory.ingest.max_file_size_mb,
    )


def file(visit: Visit) -> Response:
    """Show the record of a file; a script refreshes the page while the file is waiting."""
    orc = visit.enter()
    result = orc.ingestion.get(visit.path("sha256"))
    manifest: dict[str, Any] = result.manifest or {}
    items = (manifest.get("items") or {}).get("memories") or []
    shown_items = items[:ITEMS_SHOWN]
    rest = {name: value for name, value in manifest.items() if name != "items"}
    return visit.show(
        "ingest_file.html",
        file=result,
        manifest=rest,
        items=shown_items,
        memories=_memories(
            orc, [item["memory_id"] for item in shown_items if item.get("memory_id")]
        ),
        hidden=max(len(items) - ITEMS_SHOWN, 0),
    )


def _memories(orc: Orchestrator, ids: Sequence[str]) -> dict[str, Memory]:
    """Return the memories that exist and are visible, by id, in one read."""
    if not ids:
        return {}
    result = orc.graph.subgraph(ids, max_nodes=len(ids), retracted=True)
    return {node.memory_id: node for node in result.nodes}


def state(visit: Visit) -> Response:
    """Return the status of a file, for the script that polls it."""
    orc = visit.enter()
    result = orc.ingestion.get(visit.path("sha256"))
    return JSONResponse({"status": result.status})


async def upload(visit: Visit) -> Response:
    """Upload a file; it is processed in the background, with the permissions of the key."""
    service = visit.gate.service
    settings = await run_sync(service.settings)
    # Only the arrival of the body has a time limit. Storing the file afterwards has none.
    visit.request.scope.get(UNTIMED, lambda: None)()
    # Create the draft last: from here on, ``taken`` discards it.
    upload_draft = await run_sync(_draft, visit)
    uploaded = await taken(visit.request, upload_draft, settings.memory.server.request_timeout_s)
    if uploaded.known is None:
        service.intake.wake(visit.orchestrator)
    return JSONResponse(_upload_row(visit, uploaded), 202)


def _draft(visit: Visit) -> UploadDraft:
    return draft(visit.enter(Permission.WRITE), visit.path("name"))


def _upload_row(visit: Visit, uploaded: UploadResult) -> dict[str, Any]:
    return {
        "known": uploaded.known,
        "page": visit.link("ingest", uploaded.sha256),
        "state": visit.link("ingest", uploaded.sha256, "state"),
    }


ARRIVAL: Final = UploadPage("/{orchestrator}/ingest/{name}", upload)


RUNS: Final = 50


def jobs(visit: Visit) -> Response:
    """Show health to all readers, and plans and runs of jobs to admins, like the HTTP API."""
    orc = visit.enter()
    service = visit.gate.service
    health = without_root(service.health(orc.name), service.root)
    plans: list[JobPlan] = []
    runs: list[JobRun] = []
    if visit.may(Permission.ADMIN) and health["status"] == "ready":
        plans, runs = list(orc.jobs.plans()), list(orc.jobs.list(limit=RUNS))
    return visit.show(
        "jobs.html",
        health=health,
        plans=plans,
        runs=[(run, without_root(run.reason, service.root)) for run in runs],
        is_admin=visit.may(Permission.ADMIN),
    )


PAGES: Final = (
    ConsolePage("/{orchestrator}/ingest", files),
    ConsolePage("/{orchestrator}/ingest/{sha256}", file),
    ConsolePage("/{orchestrator}/ingest/{sha256}/state", state),
    ConsolePage("/{orchestrator}/jobs", jobs),
)
