"""Sign and check the reports of erasures, and prove the redactions of the journal with them."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from memgraph.audit.redactions import Redaction, redactions
from memgraph.errors import Conflict, ExtraMissing, InvalidConfig, InvalidInput, StorageError
from memgraph.model.erasure import ErasureReport, RedactedEntry, Signature
from memgraph.model.values import Millis, Value, validated
from memgraph.operations.erasure.plan import PlanFile
from memgraph.paths import SIGNING_KEY_NAME, OrchestratorPaths, orchestrator_names, take_free_name
from memgraph.store import erasure
from memgraph.store.files import fsync
from memgraph.store.rows import compact_json
from memgraph.store.snapshot import Snapshot

if TYPE_CHECKING:
    from types import ModuleType

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from memgraph.service.memory_service import MemoryService


_GROUP_AND_OTHERS: Final = 0o077


def load_ed25519() -> ModuleType:
    """Return the Ed25519 module. Raises ExtraMissing if cryptography is not installed."""
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise ExtraMissing.of("signed reports need cryptography", extra="signing") from None
    return ed25519


def signed(report: ErasureReport, root: Path) -> ErasureReport:
    """Return the report with its signature.

    Raises:
        InvalidConfig: the key cannot be read, or others may read it.
    """
    return report.model_copy(update={"signature": sign(_signed_bytes(report), root)})


def sign(content: bytes, root: Path) -> Signature:
    """Return a signature of the bytes. Raises InvalidConfig: see ``signed``."""
    key = _key(root)
    public = key.public_key().public_bytes_raw().hex()
    return Signature(public_key=public, value=key.sign(content).hex())


def check_signature(report: ErasureReport) -> bool:
    """Return True if the signature matches the report and the public key in it."""
    return report.signature is not None and fits(report.signature, _signed_bytes(report))


def fits(signature: Signature, content: bytes) -> bool:
    """Return True if the signature of these bytes was made with the key that it names."""
    ed25519 = load_ed25519()
    from cryptography.exceptions import InvalidSignature

    key = ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature.public_key))
    try:
        key.verify(bytes.fromhex(signature.value), content)
    except InvalidSignature:
        return False
    return True


def public_key(root: Path) -> str | None:
    """Return the public key of a runtime root, in hex, or None if it has no key yet.

    Raises:
        InvalidConfig: the key cannot be read.
    """
    key = _read(root / SIGNING_KEY_NAME)
    return None if key is None else key.public_key().public_bytes_raw().hex()


def read_report(text: str) -> ErasureReport:
    """Parse a report. Raises InvalidInput if the text is not a report of an erasure."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise InvalidInput("this is not the report of an erasure")
    return validated(ErasureReport, fields)


def _signed_bytes(report: ErasureReport) -> bytes:
    signed_fields = report.model_dump(mode="json", exclude={"signature"})
    # Fields added in later versions are left out if empty, so that old signatures stay valid.
    if report.preview is None:
        del signed_fields["preview"]
    if not report.redactions:
        del signed_fields["redactions"]
    if report.server is None:
        del signed_fields["server"]
        del signed_fields["residue"]["tables"]
    if not report.residue.other_case:
        del signed_fields["residue"]["other_case"]
    return compact_json(signed_fields).encode()


def _key(root: Path) -> Ed25519PrivateKey:
    path = root / SIGNING_KEY_NAME
    key = _read(path)
    if key is None:
        _make(path)
        key = _read(path)
    if key is None:
        raise InvalidConfig(f"{path} was removed while it was read")
    return key


def _read(path: Path) -> Ed25519PrivateKey | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidConfig(f"{path} cannot be read as a key") from error
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if status.st_mode & _GROUP_AND_OTHERS or status.st_uid != os.geteuid():
            raise InvalidConfig(f"{path} is readable by others; run: chmod 600 {path}")
        text = file.read(1_000)
    try:
        data = bytes.fromhex(text.decode("ascii").strip())
        key: Ed25519PrivateKey = load_ed25519().Ed25519PrivateKey.from_private_bytes(data)
    except ValueError as error:
        raise InvalidConfig(f"{path} cannot be read as a key") from error
    return key


def _make(path: Path) -> None:
    """Create a key, unless another process has created it in the meantime."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(draft, flags, 0o600), "w", encoding="ascii") as file:
        file.write(secrets.token_hex(32) + "\n")
    fsync(draft)
    try:
        take_free_name(draft, path)
    except Conflict:
        pass
    finally:
        draft.unlink(missing_ok=True)
    fsync(path.parent)


@dataclass(frozen=True, slots=True)
class CheckedReport:
    """The result of checking a report.

    Attributes:
        signature: True if the report is unchanged since it was signed.
        signed_by: the public key that signed it.
        known: whether that is the expected key; None: no key was given, and this root has none.
        journal: ``agrees`` with the report, ``disagrees``, or ``not_here``: its orchestrator does
            not exist here.
        complete: True if the report has no unfinished work.
        residue: the number of erased strings that were still found.
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
        """The first reason why the report is not a proof; empty if it is."""
        problems = (
            (not self.signature, "the report was changed after it was signed"),
            (self.known is False, "the report is signed with another key"),
            (self.known is None, "there is no key here; pass the public key of the signer"),
            (not self.complete or self.residue > 0, "the report describes an unfinished erasure"),
            (self.journal == "disagrees", "the journal does not agree with the report"),
        )
        return next((text for applies, text in problems if applies), "")

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"ok": self.ok}


def check_report(
    service: MemoryService, report: ErasureReport, *, key: str | None
) -> CheckedReport:
    """Check a report without changing anything.

    Args:
        key: the public key of the expected signer, 64 hexadecimal digits; None: this root's.

    Raises:
        InvalidConfig: this root's key cannot be read.
        StorageError: the orchestrator's database cannot be read.
    """
    expected = key.lower() if key is not None else public_key(service.root)
    signer = None if report.signature is None else report.signature.public_key
    return CheckedReport(
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
    reported = {
        (tombstone.memory_id, tombstone.seq, tombstone.hash) for tombstone in report.tombstones
    }
    try:
        with service.opened(report.orchestrator) as opened, opened.database.read() as snapshot:
            stored = set(erasure.tombstones(snapshot, report.erasure_id))
    except StorageError as error:
        raise type(error)(f"the journal cannot be read: {error.message}") from error
    return "agrees" if stored == reported else "disagrees"


ACCEPTED: Final = "accepted-"
_ID: Final = re.compile(r"[A-Za-z0-9_]{1,64}")


class AcceptedRedactions(Value):
    """Redactions that are accepted without a local report, e.g. after an import.

    Attributes:
        at: the time of acceptance, in milliseconds.
        reason: the reason for accepting them.
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
        """Return the reason why a redaction is not proven, or None if it is.

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
            listed = {(item.seq, item.hash, item.details) for item in report.redactions}
            proven = redaction.listed in listed
        else:
            # Reports of earlier versions have only the number of redactions.
            late = redaction.ended_in is not None and redaction.listed_in > redaction.ended_in
            proven = report.journal_redacted == redaction.entries and not late
        return None if proven else f"the signed report of {erasure_id} does not cover it"

    def _read(self, erasure_id: str) -> tuple[str | None, ErasureReport | None]:
        if _ID.fullmatch(erasure_id) is None:
            return "it has no valid id of an erasure", None
        try:
            text = (self._paths.erasures / f"{erasure_id}.json").read_text("utf-8")
            report = read_report(text)
        except FileNotFoundError:
            # An erasure that was killed has a plan instead; the next erasure completes it.
            if PlanFile.of(self._paths, erasure_id).path.exists():
                return None, None
            return f"there is no signed report of {erasure_id}", None
        except (OSError, ValueError, InvalidInput):
            return f"the report of {erasure_id} cannot be read", None
        signer = None if report.signature is None else report.signature.public_key
        if report.erasure_id != erasure_id or not check_signature(report):
            return f"the report of {erasure_id} was changed after it was signed", None
        if signer != self._key:
            return f"the report of {erasure_id} is signed with another key than this root's", None
        return None, report

    @cached_property
    def _key(self) -> str | None:
        return public_key(self._paths.root)

    @cached_property
    def _accepted(self) -> frozenset[tuple[int, str, str]]:
        entries: set[tuple[int, str, str]] = set()
        for path in sorted(self._paths.erasures.glob(f"{ACCEPTED}*.json")):
            try:
                accepted = validated(AcceptedRedactions, json.loads(path.read_text("utf-8")))
            except (OSError, ValueError, InvalidInput):
                continue
            signature = accepted.signature
            if signature is None or signature.public_key != self._key:
                continue
            if fits(signature, _accepted_bytes(accepted)):
                entries |= {
                    (redaction.seq, redaction.hash, redaction.details)
                    for redaction in accepted.redactions
                }
        return frozenset(entries)


def accept_redactions(
    paths: OrchestratorPaths, snapshot: Snapshot, *, at: int, reason: str
) -> None:
    """Accept the unproven redactions of a journal, by signing them as they are.

    Raises:
        InvalidConfig: the key cannot be read, or others may read it.
    """
    proofs = RedactionProofs(paths)
    results = redactions(snapshot).values()
    _accept(paths, [item for item in results if proofs(item) is not None], at=at, reason=reason)


def proven_redactions(paths: OrchestratorPaths, snapshot: Snapshot) -> list[Redaction]:
    """Return the proven redactions of a journal, in order."""
    proofs = RedactionProofs(paths)
    return [redaction for redaction in redactions(snapshot).values() if proofs(redaction) is None]


def keep_proven(paths: OrchestratorPaths, proven: Sequence[Redaction], *, at: int) -> None:
    """Accept redactions that are no longer proven because an erasure has changed their reports."""
    proofs = RedactionProofs(paths)
    lost = [item for item in proven if proofs(item) is not None]
    _accept(paths, lost, at=at, reason="words were erased from its report")


def _accept(paths: OrchestratorPaths, listed: Sequence[Redaction], *, at: int, reason: str) -> None:
    if not listed:
        return
    entries = tuple(
        RedactedEntry(seq=item.seq, hash=item.hash, details=item.details) for item in listed
    )
    redactions = AcceptedRedactions(at=at, reason=reason, redactions=entries)
    signed = redactions.model_copy(
        update={"signature": sign(_accepted_bytes(redactions), paths.root)}
    )
    folder = paths.erasures
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{ACCEPTED}{at}-{listed[-1].seq}.json"
    write_new(path, signed.model_dump_json(indent=2) + "\n")


def write_new(path: Path, text: str) -> None:
    """Write or replace a file durably and atomically, readable only by its owner."""
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(draft, flags, 0o600), "w", encoding="utf-8") as out:
        out.write(text)
    fsync(draft)
    draft.replace(path)
    fsync(path.parent)


def _accepted_bytes(redactions: AcceptedRedactions) -> bytes:
    return compact_json(redactions.model_dump(mode="json", exclude={"signature"})).encode()
