from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.candidates import MAX_CONFIDENCE, MAX_IMPORTANCE
from ingest.extract import extract
from ingest.parse import parse_document
from ingest.reasons import Part
from memgraph.model.enums import MemoryType

Answers = list[tuple[MemoryType | None, float]]


def classifier(answers: Answers) -> tuple[list[str], object]:
    asked: list[str] = []

    def classify(texts: Sequence[str]) -> Answers:
        asked.extend(texts)
        return answers

    return asked, classify


PROSE = b"We meet in Porto. Thanks a lot! I am the admin."


def test_sentences_are_typed_in_one_call_and_the_rest_is_counted() -> None:
    asked, classify = classifier(
        [(MemoryType.EVENT, 0.7), (None, 0.9), (MemoryType.IDENTITY, 0.99)]
    )
    made = extract(parse_document(PROSE, "notes.txt"), classify)  # type: ignore[arg-type]  # a recorder
    assert asked == ["We meet in Porto.", "Thanks a lot!", "I am the admin."]
    assert [(each.type, each.confidence) for each in made.candidates] == [
        (MemoryType.EVENT, 0.7),
        (MemoryType.FACT, MAX_CONFIDENCE),
    ]
    assert {each.code: each.count for each in made.findings} == {
        Part.NOT_TYPED: 1,
        Part.IDENTITY_LOWERED: 1,
    }


def test_what_has_a_type_is_not_asked_for() -> None:
    asked, classify = classifier([])
    made = extract(parse_document(b"- [ ] call Ann", "n.txt"), classify)  # type: ignore[arg-type]  # a recorder
    assert asked == []
    assert [each.type for each in made.candidates] == [MemoryType.TODO]


def test_nothing_left_is_told() -> None:
    _, classify = classifier([(None, 1.0)] * 3)
    made = extract(parse_document(PROSE, "notes.txt"), classify)  # type: ignore[arg-type]  # a recorder
    assert made.candidates == ()
    assert made.main_key is None
    assert {each.code for each in made.findings} == {Part.NOT_TYPED, Part.NOTHING_EXTRACTED}


def test_a_classifier_that_miscounts_is_an_error() -> None:
    _, classify = classifier([(None, 1.0)])
    with pytest.raises(ValueError, match="asked for 3 types"):
        extract(parse_document(PROSE, "notes.txt"), classify)  # type: ignore[arg-type]  # a recorder


@given(
    st.lists(
        st.tuples(st.sampled_from([None, *MemoryType]), st.floats(-1, 2)), min_size=6, max_size=6
    )
)
def test_edges_and_bounds_hold_whatever_is_answered(answers: Answers) -> None:
    text = b"# T\n\nOne is here. Two is there. See [x](x.md).\n\n- Four.\n- Five.\n- Six.\n"
    _, classify = classifier(answers)
    made = extract(parse_document(text, "t.md"), classify)  # type: ignore[arg-type]  # a recorder
    keys = {each.key for each in made.candidates}
    assert all(edge.from_key in keys and edge.to_key in keys for edge in made.edges)
    assert all(link.local_key in keys for link in made.links)
    assert made.main_key in keys
    for each in made.candidates:
        assert each.type not in (None, MemoryType.IDENTITY)
        assert each.importance is not None
        assert 0 <= each.importance <= MAX_IMPORTANCE
        assert 0 <= each.confidence <= MAX_CONFIDENCE
