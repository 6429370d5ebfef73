"""Any text becomes bounded, quoted terms; what a question asks for is read off it."""

from __future__ import annotations

import math

import pysqlite3.dbapi2 as sqlite
import pytest
from hypothesis import given, settings, strategies as st

from memgraph.retrieval import request


@pytest.fixture(scope="module")
def index() -> sqlite.Connection:
    connection = sqlite.connect(":memory:", check_same_thread=False)
    connection.execute(
        "CREATE VIRTUAL TABLE t USING fts5(content, source_role, tags, search_terms)"
    )
    connection.execute("INSERT INTO t VALUES ('summary content near', 'x', '[]', NULL)")
    return connection


@settings(max_examples=40)
@given(text=st.text(max_size=200))
def test_any_text_is_a_safe_expression(index: sqlite.Connection, text: str) -> None:
    question = request.read(text)
    frequencies = dict.fromkeys(question.words, 1)
    terms = request.choose_terms(question, frequencies, 10)
    assert len(terms.stems) <= request.MAX_TERMS
    if terms.stems:
        index.execute("SELECT rowid FROM t WHERE t MATCH ?", (terms.match,)).fetchall()


def test_stop_words_stay_where_nothing_else_is_left() -> None:
    assert set(request.read("Where is the blue notebook?").words.values()) == {"blue", "notebook"}
    assert set(request.read("who are you").words.values()) == {"who", "are", "you"}


def test_cjk_text_becomes_pairs() -> None:
    assert "東京" in request.read("東京都に住む").words.values()


def test_the_rarest_terms_are_kept() -> None:
    question = request.read(" ".join(f"word{number}" for number in range(60)))
    frequencies = {each: 1 + int(each.removeprefix("word")) for each in question.words}
    terms = request.choose_terms(question, frequencies, 1_000)
    assert terms.stems == tuple(f"word{number}" for number in range(request.MAX_TERMS))
    assert terms.match.endswith('"word31"')


def test_frequent_terms_are_searched_for_and_unknown_ones_are_not() -> None:
    question = request.read("alpha beta gamma")
    terms = request.choose_terms(question, {"alpha": 90_000, "beta": 3}, 100_000)
    assert terms.stems == ("beta", "alpha")
    assert terms.words == ("beta", "alpha")
    assert request.choose_terms(question, {}, 100_000).stems == ()


def test_idf_is_that_of_bm25() -> None:
    terms = request.choose_terms(request.read("alpha"), {"alpha": 3}, 10)
    assert terms.idf == (pytest.approx(math.log(1 + 7.5 / 3.5)),)


def test_a_long_query_is_cut() -> None:
    question = request.read(" ".join(f"w{number}" for number in range(100_000)))
    assert question.cut
    assert len(question.words) == request.MAX_CONSIDERED
    assert not request.read("short").cut


@pytest.mark.parametrize(
    ("text", "when", "how_many"),
    [
        ("When did it start?", True, False),
        ("How long has she lived there?", True, False),
        ("How many cats?", False, True),
        ("Who called?", False, False),
        ("Tell me whenever", False, False),
    ],
)
def test_what_is_asked_for(text: str, when: bool, how_many: bool) -> None:
    question = request.read(text)
    assert (question.asks_when, question.asks_how_many) == (when, how_many)


@pytest.mark.parametrize(
    ("question", "speaker"),
    [
        ("Which car did I buy?", "user"),
        ("What is my sister called?", "user"),
        ("What did you recommend for the trip?", "assistant"),
        ("What was your advice on my essay?", "assistant"),
        ("Where does Anna live?", None),
    ],
)
def test_a_question_asks_for_the_turns_of_a_role(question: str, speaker: str | None) -> None:
    assert request.read(question).speaker == speaker
