"""The spaCy provider, with pipelines that the test builds and saves itself."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from memgraph.errors import ExtraMissing, ProviderRejected
from memgraph.model.enums import EntityType
from memgraph.providers.entity_names import SPACY_CONFIDENCE, SpacyNames

PATTERNS = {
    "PERSON": "Oswin Tarrant",
    "ORG": "Quillon",
    "GPE": "Vellmark",
    "FAC": "Harbour Gate",
    "PRODUCT": "Lumo",
    "NORP": "Vellmarkian",
    "project": "Tidewater",
}


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Save a pipeline that knows a few invented names, and labels some days as dates."""
    import spacy

    made = spacy.blank("en")
    ruler: Any = made.add_pipe("entity_ruler")
    ruler.add_patterns(
        [{"label": label, "pattern": name} for label, name in PATTERNS.items()]
        + [{"label": "DATE", "pattern": each} for each in ("yesterday", "3 May 2026")]
    )
    folder = tmp_path_factory.mktemp("pipeline")
    made.to_disk(folder)
    return str(folder)


def test_labels_become_types(pipeline: str) -> None:
    text = "Oswin Tarrant of Quillon left Vellmark by Harbour Gate with Lumo for Tidewater."
    found = {each.text: each.type for each in SpacyNames(pipeline).extract([text])[0].spans}
    assert found == {
        "Oswin Tarrant": EntityType.PERSON,
        "Quillon": EntityType.ORGANIZATION,
        "Vellmark": EntityType.LOCATION,
        "Harbour Gate": EntityType.LOCATION,
        "Lumo": EntityType.OTHER,
        "Tidewater": EntityType.PROJECT,
    }


def test_offsets_are_code_points_and_what_names_no_entity_is_left_out(pipeline: str) -> None:
    text = "🙂 Vellmarkian food: Quillon served it yesterday and on 3 May 2026."
    found = SpacyNames(pipeline).extract([text])[0].spans
    assert [each.text for each in found] == ["Quillon", "3 May 2026"]
    assert [text[each.start : each.end] for each in found] == ["Quillon", "3 May 2026"]
    assert {each.confidence for each in found} == {SPACY_CONFIDENCE}


def test_a_pipeline_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ProviderRejected, match="spacy_model"):
        SpacyNames(str(tmp_path / "none")).extract(["Quillon"])


def test_without_the_package_the_extra_is_named(
    pipeline: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(ExtraMissing, match=r"memgraph-memory\[spacy\]") as caught:
        SpacyNames(pipeline).extract(["Quillon"])
    assert caught.value.details == {"extra": "spacy"}
