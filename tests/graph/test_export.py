"""Exports hold hostile texts inside the strings they were put in."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from memgraph.graph import export
from memgraph.model.enums import EdgeType
from memgraph.model.graph import Subgraph
from memgraph.model.values import Edge, Memory, StoredSource

HOSTILE = [
    'a" ]; evil [label="x',
    "end\\",
    '\\"',
    "\\N\\G\\l",
    "<b onmouseover=alert(1)>&amp;&#34;",
    ']"] --> n1["x',
    "`markdown`",
    "%%{init: {'theme':'dark'}}%%",
    "style x fill:#fff; classDef a:#quot;",
    "#quot;#35;",
    "a\nb\r\nsubgraph evil\n%% note",
    "]]></data><node id='evil'/>",
    "\x00\x01\x1b\x7f\x85\u2028\u202e\ufffe\uffff",
    "\U0001f600 日本語 ﬂ°°34¶ß",
    "",
    "x" * 500,
]
texts = st.sampled_from(HOSTILE) | st.text(max_size=40)
texts |= st.lists(st.sampled_from([*'"\\<>[]{}#;%`&|:-\n\r\t =x']), max_size=20).map("".join)


def node(number: int, text: str, **values: Any) -> Memory:
    row = {
        "memory_id": f"fact_{number}",
        "orchestrator_id": "orc",
        "kind": "fact",
        "type": "Fact",
        "content": text,
        "summary": "",
        "importance": 50,
        "confidence": 0.5,
        "status": "active",
        "sensitivity": "Internal",
        "scope": "global",
        "created_at": 0,
        "updated_at": 0,
        "access_count": 0,
        "decay_rate": 0.1,
        "tags": (text,),
        "attributes": {text: [text]},
        "content_hash": "",
        "token_cost": 1,
        "source_id": "src_0",
    } | values
    return Memory.model_validate(dict.fromkeys(Memory.model_fields) | row)


def edge(number: int, from_id: str, to_id: str, reason: str, **values: Any) -> Edge:
    row = {
        "edge_id": f"edge_{number}",
        "from_id": from_id,
        "to_id": to_id,
        "edge_type": "Updates",
        "weight": 0.5,
        "reason": reason,
        "partial": False,
        "created_at": 0,
    } | values
    return Edge.model_validate(dict.fromkeys(Edge.model_fields) | row)


def graph(*given_texts: str, source_path: str | None = None) -> Subgraph:
    """A ring of memories with these texts, each joined to the next twice."""
    nodes = tuple(node(number, text) for number, text in enumerate(given_texts))
    ends = list(zip(nodes, nodes[1:] + nodes[:1], strict=True)) if len(nodes) > 1 else []
    edges = [
        edge(2 * number + kind, one.memory_id, other.memory_id, one.content, edge_type=edge_type)
        for number, (one, other) in enumerate(ends)
        for kind, edge_type in enumerate((EdgeType.UPDATES, EdgeType.CONTRADICTS))
    ]
    return Subgraph(
        seeds=("fact_0",),
        missing=(),
        nodes=nodes,
        edges=tuple(edges),
        sources=(StoredSource(source_id="src_0", source_path=source_path),),
        distances={one.memory_id: 0 for one in nodes},
        cut=True,
        cut_reasons=("max_nodes",),
    )


rings = st.lists(texts, min_size=1, max_size=4).map(lambda given: graph(*given))


@given(rings)
def test_json_is_read_back_by_networkx_with_every_text(ring: Subgraph) -> None:
    read = nx.node_link_graph(json.loads(export.to_json(ring)), edges="edges")
    assert read.is_directed()
    assert read.is_multigraph()
    assert {name: read.nodes[name]["content"] for name in read} == {
        one.memory_id: one.content for one in ring.nodes
    }
    assert {(one, two, key) for one, two, key in read.edges(keys=True)} == {
        (one.from_id, one.to_id, one.edge_id) for one in ring.edges
    }
    assert read.graph["cut_reasons"] == ["max_nodes"]


@given(rings)
def test_graphml_is_well_formed_and_complete(ring: Subgraph) -> None:
    text = export.to_graphml(ring)
    root = ElementTree.fromstring(text)
    tag = "{http://graphml.graphdrawing.org/xmlns}"
    assert [one.get("id") for one in root.iter(f"{tag}node")] == [
        one.memory_id for one in ring.nodes
    ]
    assert {
        (one.get("source"), one.get("target"), one.get("id")) for one in root.iter(f"{tag}edge")
    } == {(one.from_id, one.to_id, one.edge_id) for one in ring.edges}
    read = nx.parse_graphml(text, force_multigraph=True)
    for one in ring.nodes:
        kept = "".join(c for c in one.content if c in "\t\n\r" or c >= " ")
        kept = kept.replace("\ufffe", "").replace("\uffff", "")
        found = read.nodes[one.memory_id].get("content") or ""
        # A reader of XML turns every kind of line end into \n, and networkx strips nothing else.
        assert found == kept.replace("\r\n", "\n").replace("\r", "\n")


def test_an_empty_graph_exports_in_every_format() -> None:
    empty = graph("x").model_copy(update={"nodes": (), "edges": (), "sources": ()})
    assert json.loads(export.to_json(empty))["nodes"] == []
    assert len(nx.parse_graphml(export.to_graphml(empty))) == 0
