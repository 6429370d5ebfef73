"""Long texts are cut to their first words and the sentences that match a question."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from memgraph.context.excerpts import ELLIPSIS, content_stems, excerpt
from memgraph.rules.budget import token_cost

SENTENCES = (
    "The heron nests in the reeds by the quay.",
    "Straßen sind dort keine.",
    "Nobody paints the boat in winter.",
    "A net costs 40 coins.",
)
texts = st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=40).map(" ".join)


@given(texts, st.integers(20, 300), st.sampled_from(SENTENCES))
def test_whole_sentences_in_their_order_and_about_as_much_as_fits(
    text: str, limit: int, question: str
) -> None:
    short = excerpt(text, limit, content_stems(question))
    if token_cost(text) <= limit:
        assert short == text
        return
    assert token_cost(short) <= limit
    at = 0
    for part in (part.strip() for part in short.split(ELLIPSIS)):
        at = text.index(part, at) + len(part)


@given(st.text(max_size=300), st.integers(0, 100), st.frozensets(st.text(max_size=5)))
def test_any_text_can_be_cut(text: str, limit: int, stems: frozenset[str]) -> None:
    short = excerpt(text, limit, stems)
    assert len(short.replace(ELLIPSIS, "").split()) <= len(text.split())


def test_the_matching_sentences_stay_behind_the_first_words() -> None:
    filler = "This one says nothing of interest to anybody at all. "
    text = f"Dear Mira, it rained here for a week, and then it rained again. {filler * 20}"
    text += f"The heron nests in the reeds. {filler * 20}"
    short = excerpt(text, 40, content_stems("Where does the heron nest?"))
    assert short == (
        f"Dear Mira, it rained here for a week, and then it rained again. {ELLIPSIS} The heron"
        f" nests in the reeds. {ELLIPSIS}"
    )


@pytest.mark.parametrize("at", [3, 280])
def test_of_a_sentence_without_end_the_place_of_the_match_stays(at: int) -> None:
    words = ["middle"] * 300
    words[at] = "heron"
    short = excerpt(" ".join(words), 40, content_stems("herons"))
    assert "heron" in short
    assert token_cost(short) < 60


def test_a_script_without_blanks_is_cut_anywhere() -> None:
    short = excerpt("記" * 100, 30)
    assert short.rstrip(f" {ELLIPSIS}") == "記" * len(short.rstrip(f" {ELLIPSIS}"))
    assert 10 < len(short) <= 32


def test_without_a_question_the_beginning_stays() -> None:
    text = " ".join(SENTENCES * 10)
    assert excerpt(text, 30).startswith(SENTENCES[0])


def test_what_a_short_first_sentence_leaves_goes_to_the_next_one() -> None:
    text = "I saw. It dies in the step which writes the file of a customer, for want of room."
    assert excerpt(text, 13) == "I saw. It dies in the step which …"


def test_the_marks_between_many_short_lines_count() -> None:
    text = "\n".join(["heron", "boat", "net"] * 500)
    short = excerpt(text, 20, {"heron"})
    assert 18 <= token_cost(short) <= 20
    assert short.count("heron") == short.count(ELLIPSIS) >= 9
