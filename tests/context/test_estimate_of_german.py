"""How far the estimate is off where words are long: the figures that `token_cost` gives."""

from __future__ import annotations

import importlib

import pytest

from memgraph.model.context import BlockFormat
from memgraph.model.enums import MemoryKind, MemoryType
from memgraph.providers import _litellm
from memgraph.rules.budget import token_cost
from memgraph.rules.lines import BlockLine, render

# Short notes with the compounds of an office, where English would have several words.
NOTES = (
    "Rückgabefrist verlängern",
    "Sägeblätter bestellen, Größe 190 Millimeter",
    "Kundenschlüssel liegt im Tresor der Geschäftsstelle",
    "Überweisungsträger künftig gegenprüfen",
    "Werkstattschlüssel hängt neben der Kellertür",
    "Umsatzsteuervoranmeldung bis zum zehnten einreichen",
    "Bohrmaschine defekt, Gewährleistungsanspruch prüfen",
    "Mitgliedsbeitragsrückerstattung veranlassen",
    "Geänderte Öffnungszeiten aushängen",
    "Haftpflichtversicherungsnachweis anfordern",
)
# The most that it is too low, and the highest difference, over the three formats.
FIGURES = {"gpt-4o": (0.0, 0.07), "gpt-4": (0.18, -0.13)}


def block(form: BlockFormat) -> str:
    lines = [
        BlockLine(
            memory_id=f"fact_01M81BD3JCX54HSK91NN3BJH{number:02d}",
            kind=MemoryKind.FACT,
            type=MemoryType.FACT,
            text=text,
            at=1_779_000_000_000,
        )
        for number, text in enumerate(NOTES)
    ]
    return render(lines, form, mark="012345")


@pytest.mark.parametrize("model", FIGURES)
def test_the_estimate_of_german_notes_is_as_far_off_as_it_says(model: str) -> None:
    _litellm.load()
    count = importlib.import_module("litellm").token_counter
    texts = {form: block(form) for form in BlockFormat}
    off = {
        form.value: token_cost(text) / count(model=model, text=text) - 1.0
        for form, text in texts.items()
    }
    below, above = FIGURES[model]
    assert min(off.values()) == pytest.approx(-below, abs=0.005)
    assert max(off.values()) == pytest.approx(above, abs=0.005)
