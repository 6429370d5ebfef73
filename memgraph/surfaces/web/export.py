"""Evidence for outside of the console: a case as an HTML file or a signed ZIP, the journal's seal.

The HTML file needs no server and has no scripts: it is for archives, mail and print.
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
    """Return a case with both sides, the evidence for each, the decision, and its journal.

    Args:
        lines: the source lines of each side, by memory id; a missing side shows none.
        root: paths of files below it are relative to it; None: whole paths.
    """
    # A browser that opens it from a disk is told by nobody else what it may load.
    style = Markup((FOLDER / "static" / "console.css").read_text(encoding="utf-8"))  # our own file
    template = _environment(root).get_template("case_document.html")
    return template.render(case=case, orchestrator=orchestrator, lines=lines, style=style)


README: Final = """Evidence of a contradiction, exported by memgraph.

case.html      both sides, for people
case.json      the same, for programs
lines.json     what each side was read from, down to its lines
receipts.json  to whom each side was handed out: the newest 50 receipts of each
journal.json   the entries of the journal about it, each with its seal
verify.json    the check of the whole journal at the time of this export
MANIFEST.json  the SHA-256 of each file above, and the ids of receipts that had expired by then
SIGNATURE.json Ed25519, over the bytes of MANIFEST.json; missing where the server has no key

To check it, run this where the files are, with Python and its package cryptography:

    import hashlib, json, pathlib
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    manifest = pathlib.Path("MANIFEST.json").read_bytes()
    for name, digest in json.loads(manifest)["sha256"].items():
        assert hashlib.sha256(pathlib.Path(name).read_bytes()).hexdigest() == digest, name
    signature = json.loads(pathlib.Path("SIGNATURE.json").read_bytes())
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature["public_key"]))
    key.verify(bytes.fromhex(signature["value"]), manifest)
    print("signed by", signature["public_key"])

It ends with an error when a file or the signature does not fit. Whoever makes another pack can
sign it with another key: compare the public key with the one that the operator names. It is the
"public_key" in the signature of every report of an erasure from the same server.
"""


def evidence_pack(visit: Visit, orc: Orchestrator, case: Case) -> bytes:
    """Return a case as a ZIP: documents, receipts, source lines and journal, with their digests.

    The manifest is signed with the key that signs erasures, where this root has one.
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
                # Its retention ended meanwhile: an audit does without it. This is no refusal.
                error.journalled = True
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
"""Receipts of each side, the newest ones."""


@cache
def _environment(root: Path | None) -> jinja2.Environment:
    return environment({"version": __version__, "place": "", "csrf_field": ""}, root)


# The seal of the journal.

AGAIN_MS: Final = MS_PER_DAY // 24
"""After so long all entries are checked once more; until then, only new ones."""


@dataclass
class Seal:
    """The last check of one journal.

    Attributes:
        entries: how many the journal has.
        problem: what was found, in words; empty: nothing.
        whole_at: when all entries were checked, milliseconds.
    """

    at: int = 0
    entries: int = 0
    head: JournalHead | None = None
    problem: str = ""
    whole_at: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def text(self) -> str:
        """Return it in one line for people."""
        time = iso(self.at)[11:16]
        if self.problem:
            return f"Chain broken: {self.problem}, {time}"
        return f"Chain verified, {self.entries:,} entries, {time}"


def sealed(visit: Visit, orc: Orchestrator) -> Seal:
    """Check the journal of an orchestrator, from where it was checked before, and return that."""
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
