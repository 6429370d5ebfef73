"""Whatever bytes come, a file is parsed or refused with a reason, in bounded shape."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from sampling import often

from ingest.candidates import MAX_CONFIDENCE, MAX_IMPORTANCE, ParsedDocument
from ingest.parse import parse_document
from ingest.reasons import RejectionReason
from memgraph.errors import IngestRejected
from memgraph.model.values import MAX_CONTENT_CHARS, MAX_NAME_CHARS, MAX_SUMMARY_CHARS

_paths = st.sampled_from(["a.txt", "adr/0007-b.md", "c.json", "d/E.MD", "0.json", ".md"])
_snippets = st.sampled_from(
    [
        "# 1. T\n",
        "## Status\n",
        "## Decision\n",
        "## Context\n",
        "Superseded by ",
        "amends [x](0003-x.md)",
        "- [ ] ",
        "- [x] a\n",
        "Ann: ",
        "Bob: hi\n",
        "# 1:56 pm on 8 May, 2023\n",
        "---\n",
        "status: x\n",
        "```\n",
        "| a | b |\n|--|--|\n",
        "> ",
        "<!--",
        "\n\n",
        "  ",
        "TBC",
        "ADR-12 ",
        "2023-05-08",
        "[10:43] ",
    ]
)
_structured = st.lists(st.one_of(_snippets, st.text(max_size=20)), max_size=25).map("".join)
_FIELDS = (
    "messages role content text memories edges type date id conversations choices tool_calls "
    "function name ts speaker"
)
_json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=10)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(_FIELDS.split()),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=25,
)


def check(data: bytes, path: str) -> ParsedDocument | None:
    try:
        document = parse_document(data, path)
    except IngestRejected as error:
        RejectionReason(error.details["reason"])
        json.dumps(error.as_dict())
        return None
    keys = [each.key for each in document.candidates]
    assert len(keys) == len(set(keys))
    for edge in document.edges:
        assert edge.from_id[1:] != edge.to_id[1:]
        assert {edge.from_id[1:], edge.to_id[1:]} <= set(keys)
        assert 0 <= edge.weight <= 1
    for each in document.candidates:
        assert each.content.strip()
        assert len(each.content) <= MAX_CONTENT_CHARS
        assert len(each.summary or "") <= MAX_SUMMARY_CHARS
        assert 1 <= len(each.locator) <= MAX_NAME_CHARS * 40
        assert each.importance is None or 0 <= each.importance <= MAX_IMPORTANCE
        assert 0 <= each.confidence <= MAX_CONFIDENCE
        assert "\x00" not in each.content
        json.dumps(each.attributes, allow_nan=False).encode()
        each.content.encode()
    for link in document.links:
        assert link.local[1:] in keys
    assert document.main_key in (keys or [None])
    json.dumps([finding.as_dict() for finding in document.findings])
    return document


@settings(max_examples=often(200))
@given(st.binary(max_size=400), _paths)
def test_any_bytes(data: bytes, path: str) -> None:
    check(data, path)


@settings(max_examples=often(200))
@given(_structured, _paths)
def test_any_text(text: str, path: str) -> None:
    check(text.encode("utf-8", "surrogatepass"), path)


@settings(max_examples=often(200))
@given(_json)
def test_any_json(value: Any) -> None:
    check(json.dumps(value).encode(), "c.json")


@given(st.text(), st.integers(0, 40))
def test_half_of_a_document_is_told_as_such(text: str, cut: int) -> None:
    whole = json.dumps({"messages": [{"role": "u", "content": text}]}).encode()
    half = whole[: max(1, len(whole) - 1 - cut)]
    with pytest.raises(IngestRejected) as caught:
        parse_document(half, "c.json")
    assert caught.value.details["reason"] == RejectionReason.JSON_INVALID
