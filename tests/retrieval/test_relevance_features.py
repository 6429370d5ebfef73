"""The context leg's features, one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memgraph.retrieval import relevance, request
from memgraph.retrieval.legs import LegResults
from memgraph.retrieval.relevance import CandidatePool
from memgraph.retrieval.request import QueryTerms
from memgraph.retrieval.scores import RatedCandidate, lift_agreed
from memgraph.store.recall import RecallCandidate


def candidate(pk: int, content: str = "words", **values: Any) -> RecallCandidate:
    fields: dict[str, Any] = {
        "pk": pk,
        "memory_id": f"ep_{pk:03d}",
        "status": "active",
        "content": content,
        "session_id": "s",
        "sequence": pk,
        "source_role": None,
        "event_time": None,
        "created_at": 0,
        "importance": 50,
        "confidence": 1.0,
        "decay_rate": 0.0,
        "last_accessed_at": None,
        "source_id": "src",
    }
    return RecallCandidate(**(fields | values))


def terms(*stems: str) -> QueryTerms:
    return QueryTerms(stems, stems, tuple(1.0 for _ in stems))


def features(
    candidates: list[RecallCandidate],
    wanted: QueryTerms,
    question: str = "",
    links: tuple[tuple[int, int, float], ...] = (),
) -> dict[str, Any]:
    pool = CandidatePool(candidates, links, None, None)
    return relevance.features(pool, request.read(question), wanted)


def test_neighbours_lend_what_they_say_and_less_from_afar() -> None:
    pool = [candidate(1, "the heron"), candidate(2), candidate(3), candidate(4)]
    near = features(pool, terms("heron"))["near_terms"]
    assert near[0] > near[1] > near[2] > near[3] == 0.0


def test_only_turns_beside_it_in_the_same_session_are_neighbours() -> None:
    pool = relevance.in_order(
        [
            candidate(1, "the heron", sequence=5),
            candidate(2, sequence=9),
            candidate(3, sequence=6, session_id="other"),
            candidate(4, sequence=None, session_id=None),
        ]
    )
    near = dict(
        zip((each.pk for each in pool), features(pool, terms("heron"))["near_terms"], strict=True)
    )
    assert near.pop(1) > 0.0
    assert set(near.values()) == {0.0}


@pytest.mark.parametrize("odd", ["\x02", "\x1e", " é ", "…", " \x02 \x02 "])
def test_odd_characters_leave_every_text_in_its_place(odd: str) -> None:
    pool = [
        candidate(1, f"a{odd}b", session_id=None),
        candidate(2, f"heron{odd}heron crane", session_id=None),
        candidate(3, "", session_id=None),
        candidate(4, "the cranes", session_id=None),
    ]
    own = features(pool, terms("heron", "crane"))["near_terms"]
    assert own[1] == 1.0
    assert own[0] == own[2] == 0.0 < own[3] < 1.0


def test_an_edge_lends_too() -> None:
    pool = [candidate(1, "the heron", session_id="a"), candidate(2, session_id="b")]
    found = features(pool, terms("heron"), links=((2, 1, 0.5),))["near_terms"]
    assert found[1] == pytest.approx(found[0] / 2)


def test_a_session_is_about_what_its_turns_say_together() -> None:
    pool = [
        candidate(1, "a heron", session_id="a"),
        candidate(2, "a lake", session_id="a"),
        candidate(3, "a heron", session_id="b"),
    ]
    session = features(pool, terms("heron", "lake"))["session_share"]
    assert session[0] == session[1] == 1.0
    assert session[2] == pytest.approx(0.5)


def test_the_speaker_counts_only_where_it_tells_apart() -> None:
    pool = [candidate(1, source_role="Ana Lima"), candidate(2, source_role="Ben")]
    assert features(pool, terms(), "What did Ana say?")["speaker"].tolist() == [1.0, 0.0]
    assert features(pool, terms(), "Did Ana meet Ben?")["speaker"].tolist() == [0.0, 0.0]


def test_a_speaker_named_is_no_word_to_look_for() -> None:
    pool = [
        candidate(1, "Ana, hello!", source_role="Ben", session_id="a"),
        candidate(2, "a heron", source_role="Ana", session_id="b"),
    ]
    share = features(pool, terms("ana", "heron"), "Did Ana see a heron?")["near_share"]
    assert share.tolist() == [0.0, 1.0]
    alone = features(pool, terms("ana"), "What about Ana?")["near_share"]
    assert alone.tolist() == [1.0, 0.0]


def test_a_fact_that_names_a_speaker_counts_as_said_by_that_speaker() -> None:
    pool = [
        candidate(1, "Ana keeps herons.", session_id=None),
        candidate(2, "Ben keeps herons.", session_id=None),
        candidate(3, "I keep herons.", source_role="Ana"),
        candidate(4, "So do I.", source_role="Ben"),
    ]
    found = features(pool, terms("ana", "heron"), "Which birds does Ana keep?")["speaker"]
    assert found.tolist() == [1.0, 0.0, 1.0, 0.0]


def test_a_part_in_a_dialogue_is_no_name() -> None:
    pool = [
        candidate(1, "The user likes tea.", source_role="assistant"),
        candidate(2, "I like tea.", source_role="user"),
    ]
    found = features(pool, terms("user", "tea"), "What does the user like?")
    assert found["speaker"].tolist() == [0.0, 0.0]
    assert found["near_terms"][0] > found["near_terms"][1]


def test_rare_words_tell_more_than_frequent_ones() -> None:
    wanted = QueryTerms(("heron", "project"), ("heron", "project"), (4.0, 0.1))
    pool = [
        candidate(1, "the project of a project is a project", session_id=None),
        candidate(2, "a heron was seen by somebody at the edge of the lake", session_id=None),
    ]
    assert relevance.rank(CandidatePool(pool, (), None, None), request.read("x"), wanted) == [2, 1]


def test_a_question_is_no_answer_and_what_follows_it_may_be() -> None:
    found = features([candidate(1, "Why?"), candidate(2, "Because.")], terms())
    assert found["asks"].tolist() == [1.0, 0.0]
    assert found["answers"].tolist() == [0.0, 1.0]


def test_times_and_numbers_count_only_when_asked_for() -> None:
    pool = [candidate(1, "It was yesterday."), candidate(2, "We have three of them.")]
    assert features(pool, terms(), "When was it?")["time_asked"].tolist() == [1.0, 0.0]
    assert features(pool, terms(), "How many?")["number_asked"].tolist() == [0.0, 1.0]
    assert not {"time_asked", "number_asked"} & features(pool, terms(), "Who?").keys()


def test_short_turns_weigh_less_and_facts_all_the_same() -> None:
    long = "many words that say something about the matter in hand today"
    length = features(
        [candidate(1, "ok"), candidate(2, long), candidate(3, "ok", session_id=None)], terms()
    )["length"]
    assert length[0] < length[1]
    assert length[2] == 0.75


def test_meaning_is_compared_with_what_all_share_taken_out() -> None:
    vectors = np.array([[10.0, 1.0, 0.0], [10.0, 0.0, 1.0]], dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    pool = CandidatePool([candidate(1), candidate(9)], (), vectors, vectors[1])
    own = relevance.features(pool, request.read("x"), terms())["own_meaning"]
    assert own[0] < 0.0 < own[1]


def test_the_words_of_documents_are_weighed_by_bm25_among_documents() -> None:
    once, often = "heron " + "reed " * 19, "heron heron " + "reed " * 58
    pool = [candidate(1, once, session_id=None), candidate(2, often, session_id=None)]
    near = features(pool, terms("heron"))["near_terms"]
    # 20 and 60 words, 40 on average.
    by_hand = [2.2 * n / (n + 1.2 * (0.25 + 0.75 * size)) for n, size in ((1, 0.5), (2, 1.5))]
    assert near.tolist() == pytest.approx([each / max(by_hand) for each in by_hand])


def test_a_document_is_first_by_its_words_and_its_vector_together() -> None:
    texts = ("heron crane", "heron reed", "reed reed")
    pool = [candidate(pk, text, session_id=None) for pk, text in enumerate(texts, start=1)]
    vectors = np.array([[0.1, 0.995], [0.8, 0.6], [0.9, 0.436]], dtype=np.float32)
    asked = np.array([1.0, 0.0], dtype=np.float32)
    found = CandidatePool(pool, (), vectors, asked)
    assert relevance.rank(found, request.read("x"), terms("heron", "crane")) == [2, 1, 3]
    assert relevance.rank(found, request.read("x"), terms()) == [3, 2, 1]
    assert relevance.rank(
        CandidatePool(pool, (), None, None), request.read("x"), terms("heron", "crane")
    ) == [
        1,
        2,
        3,
    ]


@pytest.mark.parametrize(("role", "first"), [("user", 1), ("assistant", 1), ("Ann", 9), (None, 9)])
def test_a_turn_is_weighed_by_the_kind_of_its_conversation(role: str | None, first: int) -> None:
    talkative = "reed " * 36
    pool = [candidate(1, "heron", source_role=role), candidate(9, talkative, source_role=role)]
    wanted = terms("heron", "crane", "stork")
    assert (
        relevance.rank(CandidatePool(pool, (), None, None), request.read("x"), wanted)[0] == first
    )


def test_ranking_breaks_ties_by_key() -> None:
    pool = CandidatePool([candidate(pk, session_id=None) for pk in (7, 3, 5)], (), None, None)
    assert relevance.rank(pool, request.read("x"), terms()) == [3, 5, 7]


def test_every_weight_belongs_to_a_feature() -> None:
    vectors = np.eye(2, dtype=np.float32)
    pool = CandidatePool([candidate(1), candidate(2)], (), vectors, vectors[0])
    asked = request.read("When, and how many, in May 2024?")
    weighed = {"kind", *relevance.TALK_WEIGHTS, *relevance.OWN_WEIGHTS}
    assert relevance.features(pool, asked, terms("may")).keys() == weighed


CHAT = (
    candidate(1, "I keep bees, how many hives fit?", source_role="user"),
    candidate(2, "Two hives.", source_role="assistant"),
    candidate(3, "How many hives fit?", source_role="user"),
    candidate(4, "Three hives.", source_role="Ann"),
)


def test_a_question_that_tells_of_its_speaker_is_no_mere_question() -> None:
    assert features(list(CHAT), terms("hive"))["asks"].tolist() == [0.0, 0.0, 1.0, 0.0]


def test_the_reply_of_an_assistant_gains_nothing_from_the_question_before() -> None:
    found = features(list(CHAT), terms("hive"))
    assert found["answers"].tolist() == [0.0, 0.0, 0.0, 1.0]
    assert found["before_terms"][1] == 0.0
    assert found["before_terms"][3] > 0.0


def test_my_points_to_the_user_and_your_advice_to_the_assistant() -> None:
    mine = features(list(CHAT), terms("hive"), "How many hives did I want?")["speaker"]
    assert mine.tolist() == [1.0, 0.0, 1.0, 0.0]
    advice = features(list(CHAT), terms("hive"), "How many hives did you suggest?")["speaker"]
    assert advice.tolist() == [0.0, 1.0, 0.0, 0.0]


def rated(name: str, score: float, *, contradiction: float = 1.0, **values: Any) -> RatedCandidate:
    found = candidate(int(name), **{"memory_id": name, "sequence": None} | values)
    return RatedCandidate(found, {}, score, {"contradiction": contradiction}, 1.0)


def test_what_is_first_by_text_and_by_vectors_is_lifted_with_a_reason() -> None:
    ranked = [rated("1", 0.9), rated("2", 0.8), rated("3", 0.7), rated("4", 0.1)]
    lift_agreed(ranked, 4)
    assert [each.candidate.memory_id for each in ranked] == ["4", "1", "2", "3"]
    assert ranked[0].score > 0.9
    assert ranked[0].factors["agreement"] > 1.0
    assert "agreement" not in ranked[1].factors


@pytest.mark.parametrize(
    ("values", "order"),
    [
        ({"sequence": 7}, "1243"),
        ({"status": "superseded"}, "1234"),
        ({"contradiction": 0.98}, "1234"),
    ],
)
def test_a_turn_is_lifted_to_the_third_place_and_what_is_replaced_or_open_not_at_all(
    values: dict[str, Any], order: str
) -> None:
    ranked = [rated("1", 0.9), rated("2", 0.8), rated("3", 0.7), rated("4", 0.1, **values)]
    lift_agreed(ranked, 4)
    assert "".join(each.candidate.memory_id for each in ranked) == order


def test_what_replaced_the_memory_that_both_legs_find_first_is_lifted_in_its_place() -> None:
    legs = LegResults(first={"text": 1, "vector": 2})
    assert legs.agreed is None
    legs.successors = {1: [2]}
    assert legs.agreed == 2
    legs.successors = {1: [3], 2: [3]}
    assert legs.agreed == 3
