"""Exports hold hostile texts inside the strings they were put in."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any
from xml.etree import ElementTree

import networkx as nx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memgraph.errors import InvalidInput
from memgraph.graph import export
from memgraph.model.enums import EdgeType, MemoryStatus
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


DOT_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|->|[\w=]+|[\[\]{};,]|\s+', re.DOTALL)


@given(rings)
@example(graph(*HOSTILE))
def test_dot_texts_never_leave_their_quotes(ring: Subgraph) -> None:
    text = export.to_dot(ring)
    position, outside = 0, []
    while position < len(text):
        token = DOT_TOKEN.match(text, position)
        assert token is not None, text[position:]
        position = token.end()
        if not token.group().startswith('"') and not token.group().isspace():
            outside.append(token.group())
    counted = {word: outside.count(word) for word in set(outside)}
    assert counted["label="] == len(ring.nodes) + len(ring.edges)
    assert counted.get("->", 0) == len(ring.edges)
    assert counted["digraph"] == counted["{"] == counted["}"] == 1
    lines = text.splitlines()
    assert len(lines) == 3 + len(ring.nodes) + len(ring.edges)


MERMAID_NODE = re.compile(r'  n\d+\["([^"]*)<br/>([^"]*)"\]')
MERMAID_EDGE = re.compile(r'  n\d+ (?:-->|-\.->)\|"[^"]*"\| n\d+')


@given(rings)
@example(graph(*HOSTILE))
def test_mermaid_texts_never_leave_their_labels(ring: Subgraph) -> None:
    header, *lines, end = export.to_mermaid(ring).split("\n")
    assert (header, end) == ("flowchart LR", "")
    nodes = [MERMAID_NODE.fullmatch(line) for line in lines[: len(ring.nodes)]]
    assert all(MERMAID_EDGE.fullmatch(line) for line in lines[len(ring.nodes) :])
    for one, match in zip(ring.nodes, nodes, strict=True):
        assert match is not None
        for part in match.groups():
            # What is left when entities are taken out is harmless in any context of Mermaid.
            assert not re.search(r"[^\w .,]|_", re.sub(r"#\d+;", "", part))
        shown = unescape(match[1].replace("#", "&#"))
        assert shown.startswith("Fact:")
        start = shown.removeprefix("Fact:").removesuffix("…").strip()
        if one.content.isascii() and one.content.isprintable():
            assert " ".join(one.content.split()).startswith(start)
        assert unescape(match[2].replace("#", "&#")) == one.memory_id


@pytest.mark.parametrize("write", [export.to_dot, export.to_mermaid])
def test_labels_are_bounded(write: Any) -> None:
    longest = max(len(line) for line in write(graph("x" * 30_000)).splitlines())
    assert longest < 3 * export.LABEL_CHARS


def test_drawings_tell_status_and_resolution() -> None:
    nodes = (node(0, "old", status=MemoryStatus.SUPERSEDED), node(1, "new"))
    resolved = edge(
        0, "fact_1", "fact_0", "", edge_type="Contradicts", resolved_at=5, resolution={"a": 1}
    )
    drawn = graph("x").model_copy(update={"nodes": nodes, "edges": (resolved,)})
    assert 'label="Fact (superseded): old' in export.to_dot(drawn)
    assert '[label="Contradicts (resolved)", style=dashed]' in export.to_dot(drawn)
    assert "n1 -.->" in export.to_mermaid(drawn)


def test_drawings_tell_what_is_erased() -> None:
    gone = (node(0, "", status=MemoryStatus.RETRACTED),)
    drawn = graph("x").model_copy(update={"nodes": gone, "edges": ()})
    assert "Fact (erased)" in export.to_dot(drawn)
    assert "retracted" not in export.to_dot(drawn)


def test_an_empty_graph_exports_in_every_format() -> None:
    empty = graph("x").model_copy(update={"nodes": (), "edges": (), "sources": ()})
    assert json.loads(export.export(empty, "json"))["nodes"] == []
    assert len(nx.parse_graphml(export.export(empty, "graphml"))) == 0
    assert export.export(empty, "dot").endswith("}\n")
    assert export.export(empty, "mermaid") == "flowchart LR\n"


def test_an_unknown_format_is_named() -> None:
    with pytest.raises(InvalidInput, match="json, graphml, dot, mermaid"):
        export.export(graph("x"), "svg")
