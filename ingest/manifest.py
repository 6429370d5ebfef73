"""Reports on a file: the result of a run, and the manifest beside the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from ingest.candidates import ParseFinding
from ingest.reasons import ITEM_REFUSED

MANIFEST_VERSION = 1
# Beyond this a manifest has only the counts of findings, so that people can read it.
MAX_FINDINGS = 1_000

Outcome = Literal["processed", "duplicate", "rejected", "held", "skipped", "failed"]


@dataclass(frozen=True, slots=True)
class FileResult:
    """The outcome of one file.

    ``processed``, ``duplicate`` (this content was stored before) and ``rejected`` are final and
    have a manifest. ``skipped`` stays where it is, ``failed`` stays claimed; both are tried again
    by the next run. ``held`` stays claimed until a run with ``retry``. ``reason`` is a
    ``RejectionReason``, or for failed the code of the error. ``stored_as`` and ``manifest`` are
    relative to the drop zone. ``partial``: it was processed without items that broke a rule;
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
        return asdict(self)


@dataclass(frozen=True, slots=True)
class IngestReport:
    """The results of a run, in processing order."""

    results: tuple[FileResult, ...] = ()

    @property
    def totals(self) -> dict[str, int]:
        """Return the number of files by outcome."""
        return dict(sorted(Counter(result.outcome for result in self.results).items()))

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON for a surface."""
        return {"files": [result.as_dict() for result in self.results], "totals": self.totals}


def summary_of(findings: Sequence[ParseFinding]) -> dict[str, Any]:
    """Return findings, up to a bound, their counts by code, and the rejected items by kind."""
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
