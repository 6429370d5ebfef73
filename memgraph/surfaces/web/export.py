"""Export evidence: a case as an HTML file or a signed ZIP; also check the journal's seal.

The HTML file needs no server and has no scripts, so that it can be archived, mailed and printed.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from zipfile import ZIP_DEFLATED, ZipFile

from markupsafe import Markup

from memgraph import __version__
from memgraph.clock import MS_PER_DAY, iso
from memgraph.errors import NotFound
from memgraph.service.sanitizer import without_root
from memgraph.surfaces.web.render import FOLDER, environment, plain_json

if TYPE_CHECKING:
    import jinja2

    from memgraph.audit.journal import JournalHead
    from memgraph.model.graph import Case
    from memgraph.model.influence import SourceLines
    from memgraph.operations.orchestrator import Orchestrator
    from memgraph.surfaces.web.requests import Visit


def case_document(
    case: Case,
    *,
    orchestrator: str,
    lines: Mapping[str, SourceLines],
    root: Path | None = None,
) -> str:
    """Return the HTML file of a case: both sides, their evidence, the decision and its journal.

    Args:
        lines: the source lines of the sides, by memory id; may be incomplete.
        root: paths below this folder are shown relative to it; None: paths are shown in full.
    """
    # Inlined, since the file must be self-contained.
    style = Markup((FOLDER / "static" / "console.css").read_text(encoding="utf-8"))  # our own file
    template = _environment(root).get_template("case_document.html")
    return template.render(case=case, orchestrator=orchestrator, lines=lines, style=style)


README: Final = """Evidence of a contradiction, exported by memgraph.

case.html      both sides, for people
case.json      the same, for programs
lines.json     the source lines of each side
receipts.json  the recipients of each side: its newest 50 receipts
journal.json   the journal entries about the contradiction and both sides, with their seals
verify.json    the result of checking the whole journal at the time of this export
MANIFEST.json  the SHA-256 of each file above, and the ids of receipts that had expired
SIGNATURE.json the Ed25519 signature of MANIFEST.json; missing if the server has no key

To verify the files, run this in their folder, with Python and its package cryptography:

    import hashlib, json, pathlib
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    manifest = pathlib.Path("MANIFEST.json").read_bytes()
    for name, digest in json.loads(manifest)["sha256"].items():
        assert hashlib.sha256(pathlib.Path(name).read_bytes()).hexdigest() == digest, name
    signature = json.loads(pathlib.Path("SIGNATURE.json").read_bytes())
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature["public_key"]))
    key.verify(bytes.fromhex(signature["value"]), manifest)
    print("signed by", signature["public_key"])

It ends with an error if a file or the signature does not match. A forged pack could be signed with
another key, so compare the public key with the one that the operator publishes. It is also the
"public_key" in the signature of every erasure report of the same server.
"""


def evidence_pack(visit: Visit, orc: Orchestrator, case: Case) -> bytes:
    """Return a case as a ZIP file: documents, receipts, source lines, journal and their digests.

    The manifest is signed with the key for erasure reports, if the root has one.
    """
    from memgraph.operations.erasure.signatures import public_key, sign

    root = visit.gate.service.root
    ids = [side.memory.memory_id for side in case.sides]
    lines = visit.lines(*ids)
    notes = {note.seq: note for note in case.journal}
    for memory_id in ids:
        notes |= {note.seq: note for note in orc.trace(memory_id, as_of=visit.as_of).journal}
    seals = orc.maintenance.journal_seals(notes)
    receipts: dict[str, list[Any]] = {}
    left_out: list[str] = []
    for memory_id in ids:
        reached = orc.graph.impact(memory_id, max_nodes=PACKED, as_of=visit.as_of)
        receipts[memory_id] = []
        for hand_out in reached.own_hand_outs[:PACKED]:
            try:
                receipts[memory_id].append(asdict(orc.receipts.get(hand_out.receipt_id)))
            except NotFound as error:
                # The receipt has expired since, which must not be logged as a refusal.
                error.logged = True
                left_out.append(hand_out.receipt_id)
    seal = sealed(visit, orc)
    head = None if seal.head is None else asdict(seal.head)
    files = {
        "README.txt": README,
        "case.html": case_document(case, orchestrator=orc.name, lines=lines, root=root),
        "case.json": plain_json(without_root(case.model_dump(mode="json"), root)),
        "lines.json": plain_json(
            without_root({key: line.model_dump(mode="json") for key, line in lines.items()}, root)
        ),
        "receipts.json": plain_json(without_root(receipts, root)),
        "journal.json": plain_json(
            [
                note.model_dump(mode="json") | {"seal": seals.get(seq)}
                for seq, note in sorted(notes.items())
            ]
        ),
        "verify.json": plain_json(
            {"at": iso(seal.at), "ok": not seal.problem, "text": seal.text, "head": head}
        ),
    }
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
    manifest = {
        "orchestrator": orc.name,
        "case": case.edge.edge_id,
        "as_of": iso(case.at),
        "exported_at": iso(visit.console.now_ms()),
        "exported_by": visit.principal.name,
        "journal_head": head,
        "receipts_left_out": sorted(set(left_out)),
        "version": __version__,
        "sha256": digests,
    }
    files["MANIFEST.json"] = plain_json(manifest)
    if public_key(root) is not None:
        signature = sign(files["MANIFEST.json"].encode(), root)
        files["SIGNATURE.json"] = plain_json(signature.model_dump(mode="json"))
    out = BytesIO()
    with ZipFile(out, "w", ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return out.getvalue()


PACKED: Final = 50
"""The maximum number of receipts for each side; the newest are exported."""


@cache
def _environment(root: Path | None) -> jinja2.Environment:
    return environment({"version": __version__, "place": "", "csrf_field": ""}, root)


# Checking the chain of the journal.

AGAIN_MS: Final = MS_PER_DAY // 24
"""The time after which all entries are checked again; until then, only new ones are checked."""


@dataclass
class Seal:
    """The result of the last check of a journal.

    Attributes:
        at: the time of the check, in milliseconds.
        entries: the number of journal entries.
        head: the journal's last entry; None before the first check.
        problem: a description of the findings; empty if there are none.
        whole_at: the time of the last check of all entries, in milliseconds.
    """

    at: int = 0
    entries: int = 0
    head: JournalHead | None = None
    problem: str = ""
    whole_at: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def text(self) -> str:
        """The result as one line for people."""
        time = iso(self.at)[11:16]
        if self.problem:
            return f"Chain broken: {self.problem}, {time}"
        return f"Chain verified, {self.entries:,} entries, {time}"


def sealed(visit: Visit, orc: Orchestrator) -> Seal:
    """Check the new journal entries, or all if the last full check is too old or failed."""
    seal = visit.console.seals.setdefault(orc.name, Seal())
    with seal.lock:
        now = visit.console.now_ms()
        start = seal.head if not seal.problem and now - seal.whole_at < AGAIN_MS else None
        report, head = orc.maintenance.verify_chain(start)
        seal.at, seal.entries, seal.head = now, head.seq, head
        if start is None:
            seal.whole_at = now
        seal.problem = (
            "" if report.ok else "; ".join(finding.message for finding in report.findings[:3])
        )
    return seal
