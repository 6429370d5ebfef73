"""Reports on a file: the result of a run, and the manifest beside the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from ingest.candidates import ParseFinding
from ingest.reasons import ITEM_REFUSED

MANIFEST_VERSION = 1
# A manifest is for reading: what a file of 100,000 faults has is told by counts beyond this.
MAX_FINDINGS = 1_000

Outcome = Literal["processed", "duplicate", "rejected", "held", "skipped", "failed"]


@dataclass(frozen=True, slots=True)
class FileResult:
    """The outcome of one file.

    ``processed``, ``duplicate`` (this content was stored before) and ``rejected`` are final and
    have a manifest. ``skipped`` stays where it is, ``failed`` stays claimed; both are tried again
    by the next run. ``held`` stays claimed until a run is told to try it again. ``reason`` is a
    ``Reason``, or for failed the code of the error. ``stored_as`` and ``manifest`` are relative to
    the drop zone. ``partial``: it was processed without items that broke a rule;
    ``counts["rejected_items"]`` is their number.
    """

    path: str
    outcome: Outcome
    reason: str | None = None
    message: str | None = None
    sha256: str | None = None
    stored_as: str | None = None
    manifest: str | None = None
    counts: Mapping[str, Any] = field(default_factory=dict)
    findings: Mapping[str, int] = field(default_factory=dict)
    resumed: bool = False
    partial: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON for a surface."""
        return {
            "path": self.path,
            "outcome": self.outcome,
            "reason": self.reason,
            "message": self.message,
            "sha256": self.sha256,
            "stored_as": self.stored_as,
            "manifest": self.manifest,
            "counts": dict(self.counts),
            "findings": dict(self.findings),
            "resumed": self.resumed,
            "partial": self.partial,
        }


@dataclass(frozen=True, slots=True)
class IngestReport:
    """The results of a run, in processing order."""

    results: tuple[FileResult, ...] = ()

    @property
    def totals(self) -> dict[str, int]:
        """Return the number of files by outcome."""
        counts: dict[str, int] = {}
        for result in self.results:
            counts[result.outcome] = counts.get(result.outcome, 0) + 1
        return dict(sorted(counts.items()))

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON for a surface."""
        return {"files": [result.as_dict() for result in self.results], "totals": self.totals}


def head(
    *,
    path: str,
    sha256: str | None,
    size: int | None,
    claim: str,
    stored_as: str,
    started_at: int,
) -> dict[str, Any]:
    """Return the part of a manifest that is known before anything is stored."""
    return {
        "version": MANIFEST_VERSION,
        "path": path,
        "sha256": sha256,
        "size": size,
        "claim": claim,
        "stored_as": stored_as,
        "started_at": _iso(started_at),
    }


def told(findings: Sequence[ParseFinding]) -> dict[str, Any]:
    """Return findings one by one, up to a bound, and counted by code; with their lost items, by
    kind.
    """
    counts: dict[str, int] = {}
    refused = {"memories": 0, "edges": 0}
    for finding in findings:
        counts[finding.code.value] = counts.get(finding.code.value, 0) + finding.count
        if finding.code in ITEM_REFUSED:
            refused["edges" if (finding.locator or "").startswith("/edges/") else "memories"] += 1
    return {
        "findings": [finding.as_dict() for finding in findings[:MAX_FINDINGS]],
        "finding_counts": dict(sorted(counts.items())),
        "rejected_items": refused,
    }


def with_partial(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest of a stored file, with ``partial`` and all rejected items counted.

    Some break a rule of the file's format, some one of the database, which is only known when they
    are stored.
    """
    refused = dict(manifest.get("rejected_items", {}))
    for kind, items in manifest.get("items", {}).items():
        refused[kind] = refused.get(kind, 0) + sum(e["outcome"] == "rejected" for e in items)
    return {**manifest, "rejected_items": refused, "partial": any(refused.values())}


def ended(at: int) -> dict[str, str]:
    """Return the time at which the file was finished."""
    return {"ended_at": _iso(at)}


def _iso(ms: int) -> str:
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
