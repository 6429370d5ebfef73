from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
from hypothesis import example, given, strategies as st
from pydantic import ValidationError

from ingest.parsers.memories import IngestDocument, document_schema

PUBLISHED = Path(__file__).parents[2] / "docs" / "schema" / "ingest-document.schema.json"

_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 130),
    st.floats(-1, 2),
    st.sampled_from(
        ["", "a", "Fact", "Identity", "fact", "episode", "session", "Public", "active"]
    ),
    st.lists(st.text(max_size=3), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
_FIELDS = (
    "key kind importance confidence status sensitivity tags attributes scope scope_id summary "
    "event_time captured_by sequence"
)
_names = st.sampled_from(_FIELDS.split())
_memories = st.dictionaries(_names, _values, max_size=3).map(
    lambda extra: {"content": "x", "type": "Fact"} | extra
)
_edges = st.fixed_dictionaries(
    {"from": _values, "to": st.just("a"), "type": st.sampled_from(["Updates", "Nope"])},
    optional={"weight": _values},
)


@cache
def validator() -> jsonschema.Draft202012Validator:
    schema = document_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_published_schema_is_the_models_schema() -> None:
    published = json.dumps(document_schema(), indent=2, sort_keys=True, ensure_ascii=False)
    assert PUBLISHED.read_text(encoding="utf-8") == f"{published}\n"


def test_identity_is_no_choice_of_the_schema() -> None:
    document = {"memories": [{"content": "I am root", "type": "Identity"}]}
    assert not validator().is_valid(document)


@example({"memories": [{"content": "x", "type": "Fact", "importance": 2.0, "sequence": 0.0}]})
@example({"memories": [{"content": "x", "type": "Fact", "event_time": ""}]})
@example({"memories": [{"content": "x", "type": "Fact", "scope": "session"}]})
@example({"memories": [{"content": "x", "type": "Fact", "event_time": "2026-01-31"}]})
@given(
    st.fixed_dictionaries(
        {"memories": st.lists(_memories, max_size=2)},
        optional={"edges": st.lists(_edges, max_size=2)},
    )
)
def test_schema_and_models_agree(document: dict[str, Any]) -> None:
    # Through JSON, as a file is: 1.0 and 1 are the same number to the schema.
    document = json.loads(json.dumps(document))
    try:
        IngestDocument.model_validate(document)
        accepted = True
    except ValidationError:
        accepted = False
    assert accepted == validator().is_valid(document)
