"""Console pages for activity (files, uploads, jobs), and for what was handed out and why."""

from __future__ import annotations

from functools import partial
from typing import Any, BinaryIO, Final

from starlette.responses import Response

from memgraph.errors import IngestRejected, InvalidInput, RequestTooLarge
from memgraph.model.access import Permission
from memgraph.model.remote import UploadResult
from memgraph.operations.ingestion.uploads import UploadDraft, draft
from memgraph.service.sanitizer import without_root
from memgraph.surfaces.web.pages.memories import by_id
from memgraph.surfaces.web.requests import ConsolePage, Visit

FILES: Final = 25
RUNS: Final = 25
RECEIPTS: Final = 25
FILTERS: Final = ("conversation_id", "workflow_run_id", "task_id", "purpose")
"""The query parameters that narrow the list of answers."""
CHUNK: Final = 1 << 18
"""The size in which a file is copied, in bytes."""
ITEMS_SHOWN: Final = 200
"""The maximum number of a manifest's items on a page; further items are only counted."""


def activity(visit: Visit) -> Response:
    """Show files, pending work, and plans and runs of jobs; jobs are for admins, like over HTTP."""
    orc = visit.enter()
    service = visit.gate.service
    health = without_root(service.health(orc.name), service.root)
    ready = health["status"] == "ready"
    is_admin = visit.may(Permission.ADMIN) and ready
    files = orc.ingestion.list(limit=FILES, after=visit.query("after") or None) if ready else None
    memory = orc.settings.memory if ready else None
    return visit.show(
        "activity.html",
        health=health,
        files=() if files is None else files.items,
        following=visit.following(after=None if files is None else files.next_cursor),
        largest=0 if memory is None else memory.ingest.max_file_size_mb * 1_000_000,
        may_send=visit.may(Permission.WRITE) and memory is not None and memory.ingest.enabled,
        is_admin=is_admin,
        plans=orc.jobs.plans() if is_admin else (),
        runs=orc.jobs.list(limit=RUNS) if is_admin else (),
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
        "file.html",
        file=result,
        manifest=rest,
        items=shown_items,
        memories=by_id(orc, [item["memory_id"] for item in shown_items if item.get("memory_id")]),
        hidden=max(len(items) - ITEMS_SHOWN, 0),
    )


def upload(visit: Visit) -> Response:
    """Store the chosen files, which are processed in the background, within the key's bounds."""
    orc = visit.enter(Permission.WRITE)
    problems, sent = [], []
    for item in visit.files:
        name = item.filename or ""
        try:
            sent.append(_placed(draft(orc, name), item.file))
        except (IngestRejected, InvalidInput, RequestTooLarge) as error:
            problems.append(f"{name[:40]}: {error.message}")
    visit.gate.service.intake.wake(orc.name)
    if len(visit.files) == len(sent) == 1:
        return visit.go(visit.link("activity", sent[0].sha256))
    message = f"{len(sent)} sent." + (f" Not sent: {'; '.join(problems)}" if problems else "")
    return visit.go(visit.link("activity"), message)


def _placed(upload_draft: UploadDraft, file: BinaryIO) -> UploadResult:
    try:
        for chunk in iter(partial(file.read, CHUNK), b""):
            upload_draft.write(chunk)
        return upload_draft.place()
    finally:
        upload_draft.discard()


def answers(visit: Visit) -> Response:
    """Show the newest receipts whose memories the visitor may all see."""
    orc = visit.enter(Permission.AUDIT)
    filters = {name: visit.query(name) for name in FILTERS if visit.query(name)}
    result = orc.receipts.list(limit=RECEIPTS, before=visit.query("before") or None, **filters)
    last = result.receipts[-1].receipt_id if result.cut and result.receipts else None
    return visit.show(
        "answers.html",
        receipts=result.receipts,
        filters=FILTERS,
        filtered=bool(filters),
        following=visit.following(before=last),
    )


def answer(visit: Visit) -> Response:
    """Show a receipt: the question, the answer, its memories and the text of a bulletin."""
    orc = visit.enter(Permission.AUDIT)
    receipt = orc.receipts.get(visit.path("receipt_id"))
    bulletin = None if receipt.bulletin_id is None else orc.receipts.bulletin(receipt.bulletin_id)
    memories = by_id(orc, [item.memory_id for item in receipt.items])
    return visit.show("answer.html", receipt=receipt, bulletin=bulletin, memories=memories)


PAGES: Final = (
    ConsolePage("/{orchestrator}/activity", activity),
    ConsolePage("/{orchestrator}/activity/files", upload, "POST", lengthy=True),
    ConsolePage("/{orchestrator}/activity/{sha256}", file),
    ConsolePage("/{orchestrator}/answers", answers),
    ConsolePage("/{orchestrator}/answers/{receipt_id}", answer),
)
