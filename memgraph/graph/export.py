"""Export a subgraph as JSON node-link, GraphML, DOT or Mermaid.

A memory's text is untrusted: in every format it is escaped so that it stays inside its string. The
graphical formats show only its beginning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from memgraph.errors import InvalidInput
from memgraph.model.enums import EdgeType
from memgraph.model.graph import Subgraph
from memgraph.model.values import Edge, Memory
from memgraph.rules.blocks import flatten
from memgraph.rules.lifecycle import contradiction_state

LABEL_CHARS = 60

# Characters that XML 1.0 does not allow, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Characters without a meaning in Mermaid; all others become entities.
_MERMAID_PLAIN = re.compile(r"[^\W_]|[ .,]")


def to_json(graph: Subgraph) -> str:
    """Return node-link JSON that ``networkx.node_link_graph(…, edges="edges")`` can read.

    Nodes are keyed by ``id`` and have every field of the memory, its ``distance`` and its
    ``provenance``. Edges have ``source``, ``target`` and ``key``. Times are ISO 8601.
    """
    return json.dumps(node_link(graph), ensure_ascii=False, indent=2) + "\n"


def node_link(graph: Subgraph) -> dict[str, Any]:
    """Return the content of ``to_json`` as a dictionary."""
    sources = {source.source_id: source.model_dump(mode="json") for source in graph.sources}
    return {
        "directed": True,
        "multigraph": True,
        "graph": {
            "seeds": list(graph.seeds),
            "missing": list(graph.missing),
            "cut": graph.cut,
            "cut_reasons": list(graph.cut_reasons),
        },
        "nodes": [
            node.model_dump(mode="json")
            | {
                "id": node.memory_id,
                "distance": graph.distances[node.memory_id],
                "provenance": sources.get(node.source_id, {}),
            }
            for node in graph.nodes
        ],
        "edges": [
            edge.model_dump(mode="json")
            | {"source": edge.from_id, "target": edge.to_id, "key": edge.edge_id}
            for edge in graph.edges
        ],
    }


def to_graphml(graph: Subgraph) -> str:
    """Return GraphML, written by networkx.

    Lists and objects become JSON text. Missing values and characters that XML does not allow are
    left out.
    """
    import networkx as nx

    plain: nx.MultiDiGraph[str] = nx.MultiDiGraph(cut=graph.cut, seeds=xml_value(list(graph.seeds)))
    content = node_link(graph)
    for node in content["nodes"]:
        plain.add_node(xml_value(node["id"]), **xml_attributes(node, but="id"))
    for edge in content["edges"]:
        ends = (xml_value(edge.pop("source")), xml_value(edge.pop("target")))
        plain.add_edge(*ends, key=xml_value(edge["key"]), **xml_attributes(edge, but="key"))
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + "\n".join(nx.generate_graphml(plain)) + "\n"


def to_dot(graph: Subgraph) -> str:
    """Return DOT for Graphviz: one box per memory, labelled with its type and the start of its
    text.
    """
    lines = ["digraph memories {", '  charset="UTF-8"; rankdir=LR; node [shape=box];']
    for node in graph.nodes:
        label = f"{_dot(_title(node))}\\n{_dot(node.memory_id)}"
        lines.append(f'  "{_dot(node.memory_id)}" [label="{label}"];')
    for edge in graph.edges:
        ends = f'"{_dot(edge.from_id)}" -> "{_dot(edge.to_id)}"'
        style = ", style=dashed" if edge.edge_type is EdgeType.CONTRADICTS else ""
        lines.append(f'  {ends} [label="{_dot(_edge_label(edge))}"{style}];')
    return "\n".join([*lines, "}"]) + "\n"


def to_mermaid(graph: Subgraph) -> str:
    """Return a Mermaid flowchart; nodes are n0, n1, … in the order of the subgraph."""
    names = {node.memory_id: f"n{index}" for index, node in enumerate(graph.nodes)}
    lines = ["flowchart LR"]
    for node in graph.nodes:
        label = f"{_mermaid(_title(node))}<br/>{_mermaid(node.memory_id)}"
        lines.append(f'  {names[node.memory_id]}["{label}"]')
    for edge in graph.edges:
        arrow = "-.->" if edge.edge_type is EdgeType.CONTRADICTS else "-->"
        label = _mermaid(_edge_label(edge))
        lines.append(f'  {names[edge.from_id]} {arrow}|"{label}"| {names[edge.to_id]}')
    return "\n".join(lines) + "\n"


FORMATS: Mapping[str, Callable[[Subgraph], str]] = {
    "json": to_json,
    "graphml": to_graphml,
    "dot": to_dot,
    "mermaid": to_mermaid,
}


def export(graph: Subgraph, form: str) -> str:
    """Return the subgraph in one of ``FORMATS``.

    Raises:
        InvalidInput: there is no such format.
    """
    write = FORMATS.get(form)
    if write is None:
        formats = ", ".join(FORMATS)
        raise InvalidInput(f"unknown format; use one of:  {formats}", field="format")
    return write(graph)


def _title(memory: Memory) -> str:
    text = flatten(memory.summary or memory.content)
    if len(text) > LABEL_CHARS:
        text = text[: LABEL_CHARS - 1].rstrip() + "…"
    state = "" if memory.status == "active" else f" ({memory.shown_status.value})"
    return f"{memory.type.value}{state}: {text}"


def _edge_label(edge: Edge) -> str:
    state = f" ({contradiction_state(edge.resolution)})" if edge.resolved_at else ""
    return f"{edge.edge_type.value}{state}"


def xml_attributes(fields: Mapping[str, Any], *, but: str) -> dict[str, Any]:
    """Return fields as GraphML attributes, without None values and without the field ``but``."""
    return {
        name: xml_value(value)
        for name, value in fields.items()
        if value is not None and name != but
    }


def xml_value(value: Any) -> Any:
    """Convert a value for XML: numbers are unchanged, all else is text; lists and objects as
    JSON.
    """
    if isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _NOT_XML.sub("", text)


def _dot(text: str) -> str:
    # In a quoted string only the quote and the backslash are special; & begins an entity.
    flat = flatten(text).replace("\\", "\\\\").replace('"', '\\"')
    return flat.replace("&", "&amp;")


def _mermaid(text: str) -> str:
    # Quotes end a label, backticks and %% start other syntax, and "style…:…#…;" is rewritten.
    return "".join(
        char if _MERMAID_PLAIN.match(char) else f"#{ord(char)};" for char in flatten(text)
    )
