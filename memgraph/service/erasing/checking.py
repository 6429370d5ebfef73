"""Checking an erasure report: its signature, its signer, and the journal's record of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from memgraph.errors import StorageError
from memgraph.paths import orchestrator_names
from memgraph.service.erasing.signing import check_signature, public_key
from memgraph.store import erasure

if TYPE_CHECKING:
    from memgraph.model.erasing import ErasureReport
    from memgraph.service.memory_service import MemoryService


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of checking a report.

    Attributes:
        signature: True when it is as it was signed.
        signed_by, known: the public key, and whether it is the expected one; ``known`` None: no
            key was given, and this root has none.
        journal: ``agrees`` with the report, ``disagrees``, or does not know it here.
        complete: True when the report says that nothing was left to do.
    """

    signature: bool
    signed_by: str | None
    known: bool | None
    journal: Literal["agrees", "disagrees", "not_here"]
    complete: bool
    residue: int

    @property
    def ok(self) -> bool:
        proven = self.signature and self.complete and self.residue == 0
        return proven and self.known is True and self.journal != "disagrees"

    @property
    def problem(self) -> str:
        """The first reason why it is no proof; empty: there is none."""
        problems = (
            (not self.signature, "the report is not as it was signed"),
            (self.known is False, "the report is signed with another key"),
            (self.known is None, "no key is known here; name the public key that signed it"),
            (not self.complete or self.residue > 0, "the report says that it is not finished"),
            (self.journal == "disagrees", "the journal says something else"),
        )
        return next((told for holds, told in problems if holds), "")

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"ok": self.ok}


def check_report(service: MemoryService, report: ErasureReport, *, key: str | None) -> Checked:
    """Check a report; nothing is changed.

    Args:
        key: the public key that must have signed it, 64 hexadecimal digits; None: this root's.

    Raises:
        InvalidConfig: this root's key cannot be read.
        StorageError: the orchestrator's database does not work.
    """
    expected = key.lower() if key is not None else public_key(service.root)
    signer = None if report.signature is None else report.signature.public_key
    return Checked(
        signature=check_signature(report),
        signed_by=signer,
        known=None if expected is None else signer == expected,
        journal=_journal(service, report),
        complete=report.complete,
        residue=report.residue.hits,
    )


def _journal(
    service: MemoryService, report: ErasureReport
) -> Literal["agrees", "disagrees", "not_here"]:
    if report.orchestrator not in orchestrator_names(service.root):
        return "not_here"
    told = {(each.memory_id, each.seq, each.hash) for each in report.tombstones}
    try:
        with service.opened(report.orchestrator) as opened, opened.database.read() as snapshot:
            found = set(erasure.tombstones(snapshot, report.erasure_id))
    except StorageError as error:
        raise type(error)(f"the journal cannot be read: {error.message}") from error
    return "agrees" if found == told else "disagrees"
