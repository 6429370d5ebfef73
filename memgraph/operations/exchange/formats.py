"""Write an export in formats of other programs: a Markdown vault, CSV, GraphML.

They are made from the lines of ``exchange.export_lines``, and like these they contain all memories,
whatever their sensitivity.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from memgraph.clock import iso
from memgraph.errors import Conflict, InvalidInput
from memgraph.rules.blocks import flatten
from memgraph.store.files import draft_beside, publish

# Characters that XML 1.0 does not allow, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Record = dict[str, Any]

COLUMNS: Final = (
    "memory_id", "type", "kind", "status", "content", "importance", "confidence", "sensitivity",
    "scope", "scope_id", "agent_id", "session_id", "source_role", "event_time", "created_at",
    "valid_until", "tags", "source", "locator",
)  # fmt: skip
_TIMES: Final = ("event_time", "created_at", "updated_at", "valid_until", "last_accessed_at")
_TITLE_CHARS: Final = 80
# A spreadsheet would execute a cell that begins with one of these as a formula.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


@dataclass(slots=True)
class ExportContents:
    """The memories, edges and sources of an export; ``memories`` by id, in export order."""

    memories: dict[str, Record] = field(default_factory=dict)
    edges: list[Record] = field(default_factory=list)
    sources: dict[str, Record] = field(default_factory=dict)


def read_contents(lines: Iterable[bytes]) -> ExportContents:
    """Read the memories of an export, each with its source, and with times as ISO 8601."""
    contents = ExportContents()
    for line in lines:
        record: Record = json.loads(line)
        match record.pop("record"):
            case "memory":
                contents.memories[record["memory_id"]] = record
            case "edge":
                contents.edges.append(_dated(record))
            case "source":
                contents.sources[record["source_id"]] = record
    for memory in contents.memories.values():
        source = contents.sources.get(memory["source_id"], {})
        memory["source"] = source.get("source_path") or source.get("source_type")
        memory["locator"] = source.get("locator")
        _dated(memory)
    return contents


def _dated(record: Record) -> Record:
    for name in (*_TIMES, "resolved_at"):
        if record.get(name) is not None:
            record[name] = iso(record[name])
    return record


def write_csv(contents: ExportContents, target: Path) -> None:
    """Write one row per memory; a quote is put before texts that a spreadsheet would execute."""
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for memory in contents.memories.values():
            writer.writerow([_cell(memory.get(name)) for name in COLUMNS])


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        value = ", ".join(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def write_graphml(contents: ExportContents, target: Path) -> None:
    """Write all memories and edges as a directed GraphML graph."""
    import networkx as nx

    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    for memory_id, memory in contents.memories.items():
        graph.add_node(_xml_value(memory_id), **_xml_attributes(memory, but="memory_id"))
    for edge in contents.edges:
        ends = _xml_value(edge["from_memory_id"]), _xml_value(edge["to_memory_id"])
        graph.add_edge(*ends, key=edge["edge_id"], **_xml_attributes(edge, but="edge_id"))
    with target.open("w", encoding="utf-8") as file:
        file.write('<?xml version="1.0" encoding="UTF-8"?>\n')
        file.writelines(f"{line}\n" for line in nx.generate_graphml(graph))


def write_vault(contents: ExportContents, folder: Path) -> None:
    """Write one Markdown note for each memory, by type, with front matter and ``[[links]]``.

    Raises:
        Conflict: the folder exists.
    """
    if os.path.lexists(folder):
        raise Conflict(f"{folder} already exists; name a new folder", path=str(folder))
    with TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as draft:
        _write_notes(contents, Path(draft) / folder.name)
        (Path(draft) / folder.name).rename(folder)


def _write_notes(contents: ExportContents, folder: Path) -> None:
    folder.mkdir(mode=0o700)
    links: dict[str, list[str]] = defaultdict(list)
    for edge in contents.edges:
        first, last = edge["from_memory_id"], edge["to_memory_id"]
        reason = f": {flatten(edge['reason'])}" if edge["reason"] else ""
        links[first].append(f"- {edge['edge_type']} {_link(contents, last)}{reason}")
        links[last].append(f"- {edge['edge_type']} (from) {_link(contents, first)}{reason}")
    for memory_id, memory in contents.memories.items():
        place = folder / memory["type"]
        place.mkdir(mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        note = os.open(place / f"{memory_id}.md", flags, 0o600)
        with os.fdopen(note, "w", encoding="utf-8") as file:
            file.write(_note(memory, links[memory_id]))


def _note(memory: Mapping[str, Any], links: Iterable[str]) -> str:
    front = {name: memory.get(name) for name in COLUMNS if name != "content"}
    existing = {"aliases": [_title(memory)]} | {
        name: value for name, value in front.items() if value not in (None, [], "")
    }
    head = yaml.safe_dump(existing, allow_unicode=True, sort_keys=False)
    related = "\n".join(sorted(links))
    tail = f"\n## Related\n\n{related}\n" if related else ""
    return f"---\n{head}---\n\n{memory['content']}\n{tail}"


def _title(memory: Mapping[str, Any]) -> str:
    text = flatten(memory["summary"] or memory["content"])
    return text if len(text) <= _TITLE_CHARS else f"{text[: _TITLE_CHARS - 1].rstrip()}…"


def _link(contents: ExportContents, memory_id: str) -> str:
    """Return a link to a note, without the characters that have a meaning inside a link."""
    memory = contents.memories.get(memory_id)
    if memory is None:
        return memory_id
    title = "".join(item for item in _title(memory) if item not in "[]|#^")
    return f"[[{memory_id}|{title}]]"


FORMATS: Final[Mapping[str, Callable[[ExportContents, Path], None]]] = {
    "csv": write_csv,
    "graphml": write_graphml,
    "vault": write_vault,
}


def write_as(form: str, lines: Iterable[bytes], target: Path, *, force: bool = False) -> int:
    """Write an export in one of ``FORMATS``, and return the number of memories.

    Args:
        target: the file, or the folder of a vault, which must not exist.
        force: replace a file that exists.

    Raises:
        InvalidInput: the format is unknown.
        Conflict: the target exists.
    """
    write = FORMATS.get(form)
    if write is None:
        existing = ", ".join(FORMATS)
        raise InvalidInput(f"unknown format; use one of: {existing}", field="format")
    contents = read_contents(lines)
    if write is write_vault:
        write(contents, target)
        return len(contents.memories)
    with draft_beside(target) as draft:
        write(contents, draft)
        publish(draft, target, force=force)
    return len(contents.memories)


def _xml_attributes(fields: Mapping[str, Any], *, but: str) -> dict[str, Any]:
    """Return fields as GraphML attributes, without None values and without the field ``but``."""
    return {
        name: _xml_value(value)
        for name, value in fields.items()
        if value is not None and name != but
    }


def _xml_value(value: Any) -> Any:
    """Convert a value for XML: numbers are unchanged, all else is text; lists and objects as
    JSON.
    """
    if isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _NOT_XML.sub("", text)
