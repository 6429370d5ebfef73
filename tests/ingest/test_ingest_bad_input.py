"""Ingest every kind of bad file: each gets a code and a manifest, and does not stop the others."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from programs import ran

from ingest.claims import MANIFEST_ENDING
from ingest.reasons import RejectionReason
from memgraph import MemoryService, Orchestrator
from memgraph.surfaces.cli import main

GOOD = "# Good\n\nWe decided to build the bridge.\n"


def own(**fields: Any) -> bytes:
    """A document of one memory."""
    return json.dumps({"memories": [{"content": "Tea.", "type": "Fact", **fields}]}).encode()


REFUSED: dict[str, tuple[bytes, RejectionReason]] = {
    "empty.md": (b"", RejectionReason.EMPTY),
    "blank.txt": (b" \n\t", RejectionReason.EMPTY),
    "bom-only.txt": (b"\xef\xbb\xbf", RejectionReason.EMPTY),
    "huge.txt": (b"x" * 1_000_001, RejectionReason.TOO_LARGE),
    "binary.txt": (bytes(range(256)) * 50, RejectionReason.BINARY),
    "image.md": (b"\x89PNG\r\n\x1a\n1234", RejectionReason.BINARY),
    "half.json": (b'{"memories":[{"content":"Tea', RejectionReason.JSON_INVALID),
    "half.txt": ("Café".encode()[:-1], RejectionReason.ENCODING_TRUNCATED),
    "half16.txt": ("We go.".encode("utf-16")[:-1], RejectionReason.ENCODING_TRUNCATED),
    "latin1.txt": ("café au lait".encode("latin-1"), RejectionReason.NOT_UTF8),
    "latin1.json": ('{"a":"é"}'.encode("latin-1"), RejectionReason.NOT_UTF8),
    "utf32.txt": ("We go.".encode("utf-32"), RejectionReason.NOT_UTF8),
    "nul.txt": (b"We decided\x00 to go.", RejectionReason.NUL_BYTES),
    "nul.json": (b'{"a":"\\u0000"}', RejectionReason.JSON_INVALID),
    "deep.json": (b"[" * 100_000, RejectionReason.JSON_TOO_DEEP),
    "deep.md": (b">" * 100_000 + b" We go.\n", RejectionReason.MARKDOWN_TOO_DEEP),
    "twice.json": (b'{"memories":[],"memories":[]}', RejectionReason.JSON_DUPLICATE_KEY),
    "nan.json": (b"[NaN]", RejectionReason.JSON_INVALID),
    "infinite.json": (b"[-Infinity]", RejectionReason.JSON_INVALID),
    "float.json": (b"[1e400]", RejectionReason.JSON_INVALID),
    "integer.json": (b"[9223372036854775808]", RejectionReason.JSON_INVALID),
    "digits.json": (b"[" + b"9" * 10_000 + b"]", RejectionReason.JSON_INVALID),
    "surrogate.json": (b'["\\ud800"]', RejectionReason.JSON_INVALID),
    "two.json": (b'{"a":1}{"b":2}', RejectionReason.JSON_INVALID),
    "key.json": (b'{"\\udc00":1}', RejectionReason.JSON_INVALID),
    "comma.json": (b"[1,]", RejectionReason.JSON_INVALID),
    "enum.json": (own(type="Rumour"), RejectionReason.NO_VALID_ITEMS),
    "year-0.json": (own(event_time="0001-01-01T00:00:00+14:00"), RejectionReason.NO_VALID_ITEMS),
    "identity.json": (own(type="Identity"), RejectionReason.NO_VALID_ITEMS),
    "field.json": (b'{"memories":[],"edges":[],"extra":1}', RejectionReason.SCHEMA_VIOLATION),
    "memories.json": (b'{"memories":{}}', RejectionReason.SCHEMA_VIOLATION),
    "edges.json": (b'{"memories":[],"edges":{}}', RejectionReason.SCHEMA_VIOLATION),
    "x." + "t" * 250: (b"words", RejectionReason.UNSUPPORTED_TYPE),
}
TAKEN = {
    "bom.txt": b"\xef\xbb\xbfWe decided to close the office.\n",
    "bom.json": b"\xef\xbb\xbf" + own(),
    "utf16.txt": "We decided to paint the boat.".encode("utf-16"),
    "two\nlines.md": b"We decided to move north.\n",
    "..up.md..md": b"We decided to move south.\n",
    "..\\..\\x.md": b"We decided to move in.\n",
    "n" * 252 + ".md": b"We decided to move east.\n",
    "\x1b[31mred.md": b"We decided to move out.\n",
    "\udcff.md": b"We decided to move west.\n",
    "zz.md": GOOD.encode(),
}
# Files with hidden names are skipped, so these names get a prefix.
NAMES = {name: f"x{name}" if name.startswith(".") else name for name in TAKEN}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    config = "[memory.ingest]\nmax_file_size_mb = 1\n"
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "memgraph.toml").write_text(config)
    return tmp_path / "root"


@pytest.fixture
def orc(root: Path) -> Iterator[Orchestrator]:
    with MemoryService(root, environ={}, background=False) as service:
        yield service.orchestrator("o", create=True)


def ingest(root: Path, capsys: pytest.CaptureFixture[str], *options: str) -> list[dict[str, Any]]:
    assert main(["--root", str(root), "--json", "ingest", "o", *options]) == 1
    files: list[dict[str, Any]] = json.loads(capsys.readouterr().err)["error"]["details"]["files"]
    return files


def test_bad_files(orc: Orchestrator, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    zone = orc.paths.ingest
    for name, (content, _) in REFUSED.items():
        (zone / name).write_bytes(content)
    for name, content in TAKEN.items():
        (zone / NAMES[name]).write_bytes(content)
    (zone / "link.md").symlink_to("/etc/hostname")
    (zone / "dangling.md").symlink_to("/nowhere")
    os.mkfifo(zone / "pipe.md")
    previewed = ingest(root, capsys, "--dry-run")
    told = ingest(root, capsys)
    known = ("path", "outcome", "reason", "message", "findings")
    assert [[each[name] for name in known] for each in previewed] == [
        [each[name] for name in known] for each in told
    ]
    expected = {name: reason.value for name, (_, reason) in REFUSED.items()}
    links = dict.fromkeys(("link.md", "dangling.md"), RejectionReason.LINK.value)
    expected |= {**links, "pipe.md": RejectionReason.NOT_REGULAR_FILE.value}
    refused = {each["path"]: each for each in told if each["outcome"] == "rejected"}
    assert {path: each["reason"] for path, each in refused.items()} == expected
    for each in refused.values():
        manifest = json.loads((zone / each["manifest"]).read_bytes())
        assert (manifest["outcome"], manifest["reason"]) == ("rejected", each["reason"])
        assert manifest["message"] == each["message"]
        assert os.path.lexists(zone / each["stored_as"])
    assert [each["outcome"] for each in told if each["path"] not in refused] == ["processed"] * len(
        TAKEN
    )
    contents = {each.content for each in orc.memories.list(limit=200)}
    assert {"We decided to build the bridge.", "We decided to move east.", "Tea."} <= contents
    # Only processed and rejected files remain, and each has a manifest.
    assert {each.name for each in zone.iterdir()} == {".claimed", "processed", "rejected"}
    for folder, count in ((orc.paths.rejected, len(expected)), (orc.paths.processed, len(TAKEN))):
        names = os.listdir(os.fsencode(folder))  # noqa: PTH208 - names that are no text
        assert len(names) == 2 * count
        assert sum(name.endswith(MANIFEST_ENDING.encode()) for name in names) == count


BOUNDED = """
import resource, sys
from ingest import candidates
from ingest.pipeline import IngestPipeline
from memgraph import MemoryService
resource.setrlimit(resource.RLIMIT_CPU, (25, 25))
candidates.MAX_CANDIDATES = 20_000
with MemoryService(sys.argv[1], environ={}, background=False) as service:
    [result] = IngestPipeline(service.orchestrator("orc")).run()
    print(result.outcome, result.reason)
"""


def test_a_file_of_short_sentences_alone_costs_seconds(tmp_path: Path) -> None:
    """1.2 MB of them were 50,000 memories and half a minute of processor time."""
    with MemoryService(tmp_path, environ={}, background=False) as service:
        zone = service.orchestrator("orc", create=True).paths.ingest
    lines = (f"The lamp {number} is red." for number in range(50_000))
    (zone / "short.md").write_text("\n".join(lines))
    done = ran(["-c", BOUNDED, str(tmp_path)])
    assert done.stdout.split() == ["rejected", "too_many_items"]
