"""Any text becomes bounded, quoted terms; what a question asks for is read off it."""

from __future__ import annotations

import math

import pysqlite3.dbapi2 as sqlite
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.clock import parse_time
from memgraph.retrieval import query
from memgraph.retrieval.query import Period


@pytest.fixture(scope="module")
def index() -> sqlite.Connection:
    connection = sqlite.connect(":memory:", check_same_thread=False)
    connection.execute(
        "CREATE VIRTUAL TABLE t USING fts5(content, source_role, tags, search_terms)"
    )
    connection.execute("INSERT INTO t VALUES ('summary content near', 'x', '[]', NULL)")
    return connection


@given(text=st.text(max_size=200))
def test_any_text_is_a_safe_expression(index: sqlite.Connection, text: str) -> None:
    question = query.read(text)
    frequencies = dict.fromkeys(question.words, 1)
    terms = query.choose_terms(question, frequencies, 10)
    assert len(terms.stems) <= query.MAX_TERMS
    if terms.stems:
        index.execute("SELECT rowid FROM t WHERE t MATCH ?", (terms.match,)).fetchall()


def test_stop_words_stay_where_nothing_else_is_left() -> None:
    assert set(query.read("Where is the blue notebook?").words.values()) == {"blue", "notebook"}
    assert set(query.read("who are you").words.values()) == {"who", "are", "you"}


def test_cjk_text_becomes_pairs() -> None:
    assert "東京" in query.read("東京都に住む").words.values()


def test_the_rarest_terms_are_kept() -> None:
    question = query.read(" ".join(f"word{number}" for number in range(60)))
    frequencies = {each: 1 + int(each.removeprefix("word")) for each in question.words}
    terms = query.choose_terms(question, frequencies, 1_000)
    assert terms.stems == tuple(f"word{number}" for number in range(query.MAX_TERMS))
    assert terms.searched == query.MAX_TERMS


def test_frequent_terms_are_not_searched_for_but_count() -> None:
    question = query.read("alpha beta")
    common = query.RANKED_AT_ONCE * 2
    alone = query.choose_terms(question, {"alpha": common, "beta": common + 1}, common * 2)
    assert (alone.stems, alone.searched) == (("alpha", "beta"), 1)
    # Half of those that match are the newest half.
    assert alone.after == common
    rare = query.choose_terms(question, {"alpha": 3, "beta": common}, common * 2)
    assert (rare.stems, rare.searched, rare.after) == (("alpha", "beta"), 1, 0)
    assert rare.match.endswith('("alpha")')
    none = query.choose_terms(question, {}, common * 2)
    assert (none.stems, none.searched, none.after) == ((), 0, 0)


def test_idf_is_that_of_bm25() -> None:
    terms = query.choose_terms(query.read("alpha"), {"alpha": 3}, 10)
    assert terms.idf == (pytest.approx(math.log(1 + 7.5 / 3.5)),)


def test_a_long_query_is_cut() -> None:
    question = query.read(" ".join(f"w{number}" for number in range(100_000)))
    assert question.cut
    assert len(question.words) == query.MAX_CONSIDERED
    assert not query.read("short").cut


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
    question = query.read(text)
    assert (question.asks_when, question.asks_how_many) == (when, how_many)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in March 2024", (Period(2024, 3, None),)),
        ("on 7 June 2024", (Period(2024, 6, 7),)),
        ("on June 7th, 2024 and in 2021", (Period(2024, 6, 7), Period(2021, None, None))),
        ("since 2024-06-07", (Period(2024, 6, 7),)),
        ("in August", (Period(None, 8, None),)),
        ("they may march on", ()),
        ("room 20245", ()),
    ],
)
def test_periods(text: str, expected: tuple[Period, ...]) -> None:
    assert query.read(text).periods == expected


@pytest.mark.parametrize(
    ("period", "agreement"),
    [
        (Period(2024, 6, None), 1.0),
        (Period(2024, 5, None), 0.5),
        (Period(2024, None, None), 0.5),
        (Period(2023, 5, 1), 0.0),
        (Period(2024, 6, 8), 2 / 3),
    ],
)
def test_agreement_with_a_moment(period: Period, agreement: float) -> None:
    assert period.agreement(parse_time("2024-06-07T12:00")) == pytest.approx(agreement)


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_agreement_lies_between_0_and_1(ms: int) -> None:
    assert 0.0 <= Period(2024, 6, 7).agreement(ms) <= 1.0


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
    assert query.read(question).speaker == speaker
