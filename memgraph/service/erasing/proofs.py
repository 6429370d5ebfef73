"""Proofs of a journal's redactions: signed erasure reports, and accepted redactions.

Both are files beside the database, signed with a key that is elsewhere.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from memgraph.audit.redactions import Redaction, redactions
from memgraph.errors import InvalidInput
from memgraph.model.erasing import ErasureReport, RedactedEntry, Signature
from memgraph.model.values import Millis, Value, validated
from memgraph.paths import OrchestratorPaths
from memgraph.service.erasing.plan import PlanFile
from memgraph.service.erasing.signing import (
    check_signature,
    fits,
    public_key,
    read_report,
    sign,
)
from memgraph.store.backup import fsync
from memgraph.store.rows import compact_json
from memgraph.store.snapshot import Snapshot

ACCEPTED: Final = "accepted-"
_ID: Final = re.compile(r"[A-Za-z0-9_]{1,64}")


class AcceptedRedactions(Value):
    """Redactions without a local report that an operator accepted: of an import or a backup.

    Attributes:
        reason: why; ``at``: when, in milliseconds.
    """

    at: Millis
    reason: str
    redactions: Annotated[tuple[RedactedEntry, ...], Field(min_length=1)]
    signature: Signature | None = None


class RedactionProofs:
    """Looks up the proof of a redaction in an orchestrator's folder; see ``audit.redactions``."""

    def __init__(self, paths: OrchestratorPaths) -> None:
        self._paths = paths
        self._problems: dict[str, tuple[str | None, ErasureReport | None]] = {}

    def __call__(self, redaction: Redaction) -> str | None:
        """Return why a redaction is not proven; None: it is.

        Raises:
            InvalidConfig: the signing key cannot be read.
        """
        if redaction.listed in self._accepted:
            return None
        erasure_id = redaction.erasure_id
        if erasure_id not in self._problems:
            self._problems[erasure_id] = self._read(erasure_id)
        problem, report = self._problems[erasure_id]
        if problem is not None or report is None:
            return problem
        if report.redactions:
            listed = {(each.seq, each.hash, each.details) for each in report.redactions}
            proven = redaction.listed in listed
        else:
            # A report of an earlier version has their number alone.
            late = redaction.ended_in is not None and redaction.listed_in > redaction.ended_in
            proven = report.journal_redacted == redaction.entries and not late
        return None if proven else f"the signed report of {erasure_id} does not cover it"

    def _read(self, erasure_id: str) -> tuple[str | None, ErasureReport | None]:
        if _ID.fullmatch(erasure_id) is None:
            return "it names no erasure", None
        try:
            text = (self._paths.erasures / f"{erasure_id}.json").read_text("utf-8")
            report = read_report(text)
        except FileNotFoundError:
            # An erasure that was killed has a plan instead, and is finished by the next one.
            if PlanFile.of(self._paths, erasure_id).path.exists():
                return None, None
            return f"there is no signed report of {erasure_id}", None
        except (OSError, ValueError, InvalidInput):
            return f"the report of {erasure_id} cannot be read", None
        signer = None if report.signature is None else report.signature.public_key
        if report.erasure_id != erasure_id or not check_signature(report):
            return f"the report of {erasure_id} is not as it was signed", None
        if signer != self._key:
            return f"the report of {erasure_id} is signed with another key than this root's", None
        return None, report

    @cached_property
    def _key(self) -> str | None:
        return public_key(self._paths.root)

    @cached_property
    def _accepted(self) -> frozenset[tuple[int, str, str]]:
        found: set[tuple[int, str, str]] = set()
        for path in sorted(self._paths.erasures.glob(f"{ACCEPTED}*.json")):
            try:
                told = validated(AcceptedRedactions, json.loads(path.read_text("utf-8")))
            except (OSError, ValueError, InvalidInput):
                continue
            signature = told.signature
            if signature is None or signature.public_key != self._key:
                continue
            if fits(signature, _said(told)):
                found |= {(each.seq, each.hash, each.details) for each in told.redactions}
        return frozenset(found)


def accept_redactions(
    paths: OrchestratorPaths, snapshot: Snapshot, *, at: int, reason: str
) -> None:
    """Sign the redactions of a journal that nothing here proves, as they are.

    Raises:
        InvalidConfig: the key cannot be read, or others may read it.
    """
    proofs = RedactionProofs(paths)
    found = redactions(snapshot).values()
    _accept(paths, [each for each in found if proofs(each) is not None], at=at, reason=reason)


def proven_redactions(paths: OrchestratorPaths, snapshot: Snapshot) -> list[Redaction]:
    """Return the redactions of a journal that are proven, in order."""
    proofs = RedactionProofs(paths)
    return [each for each in redactions(snapshot).values() if proofs(each) is None]


def keep_proven(paths: OrchestratorPaths, proven: Sequence[Redaction], *, at: int) -> None:
    """Sign redactions that were proven until an erasure changed their reports."""
    proofs = RedactionProofs(paths)
    lost = [each for each in proven if proofs(each) is not None]
    _accept(paths, lost, at=at, reason="words were erased from its report")


def _accept(paths: OrchestratorPaths, listed: Sequence[Redaction], *, at: int, reason: str) -> None:
    if not listed:
        return
    entries = tuple(
        RedactedEntry(seq=each.seq, hash=each.hash, details=each.details) for each in listed
    )
    told = AcceptedRedactions(at=at, reason=reason, redactions=entries)
    signed = told.model_copy(update={"signature": sign(_said(told), paths.root)})
    folder = paths.erasures
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{ACCEPTED}{at}-{listed[-1].seq}.json"
    write_new(path, signed.model_dump_json(indent=2) + "\n")


def write_new(path: Path, text: str) -> None:
    """Write a file durably and atomically, readable only by its owner; replaces an existing one."""
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(draft, flags, 0o600), "w", encoding="utf-8") as out:
        out.write(text)
    fsync(draft)
    draft.replace(path)
    fsync(path.parent)


def _said(told: AcceptedRedactions) -> bytes:
    return compact_json(told.model_dump(mode="json", exclude={"signature"})).encode()
