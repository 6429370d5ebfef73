"""Export a subgraph as JSON node-link or GraphML."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from memgraph.model.graph import Subgraph

# Characters that XML 1.0 does not allow, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


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
