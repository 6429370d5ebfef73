"""The benchmark of retrieval sets counts what it says it counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import plain, retrieval
from memgraph.errors import InvalidInput

SCENES = Path(retrieval.__file__).parent / "corpus" / "retrieval-scenes.jsonl"


def store(name: str, *questions: dict[str, Any], talk: bool = False) -> dict[str, Any]:
    texts = ("My bicycle has a flat tyre again.", "Take my tandem.", "It rains since Monday.")
    more = [
        {"session": "s", "place": at, "speaker": ("Ana", "Ben")[at % 2], "at": 1_700_000_000_000}
        for at in range(len(texts))
    ]
    units = [
        {"id": f"u{at}", "text": text, **(more[at] if talk else {})}
        for at, text in enumerate(texts)
    ]
    return {"store": name, "units": units, "questions": list(questions)}


def asked(text: str, **gold: float) -> dict[str, Any]:
    return {"text": text, "gold": gold, "category": "what"}


def written(folder: Path, *stores: dict[str, Any], name: str = "few") -> Path:
    path = folder / f"{name}.jsonl"
    path.write_text("\n".join(json.dumps(each) for each in stores), encoding="utf-8")
    return path


FLAT = asked("Whose bicycle has a flat tyre?", u0=1)
WET = asked("Since when does it rain?", u2=1)
NOWHERE = asked("Who sold the boat?", gone=1)


def test_score_by_hand() -> None:
    found = retrieval.score(["a", "b", "c"], {"b": 2, "c": 1, "d": 1})
    gained = 3 / 1.584963 + 1 / 2
    ideal = 3 + 1 / 1.584963 + 1 / 2
    assert found["nDCG@10"] == pytest.approx(gained / ideal)
    assert found["R@5"] == found["R@20"] == pytest.approx(2 / 3)
    late = retrieval.score([f"u{at}" for at in range(20)], {"u7": 1, "u15": 1})
    assert [late[f"R@{k}"] for k in retrieval.CUTOFFS] == [0, 0.5, 1]


def test_plain_search_ranks_by_words_by_vectors_and_by_both() -> None:
    texts = ["The heron nests in the reeds.", "A motor needs oil.", "Reeds and reeds and a heron."]
    with plain.PlainSearch(texts) as search:
        found = search.search("where is oil for the motors?")
        assert found[plain.FTS5] == [1]
        assert found[plain.VECTORS][0] == 1
        assert sorted(found[plain.VECTORS]) == [0, 1, 2]
        assert found[plain.FUSED] == [1, *found[plain.VECTORS][1:]]
        # "the" and "in" are no words to search for.
        assert search.search("the cormorant in it")[plain.FTS5] == []


@pytest.mark.parametrize("talk", [False, True])
def test_recall_and_plain_search_answer_the_same_questions(tmp_path: Path, talk: bool) -> None:
    first = written(tmp_path, store("one", FLAT, NOWHERE, talk=talk), store("two", WET, talk=talk))
    second = written(tmp_path, store("three", WET, talk=talk), name="other")
    told: list[tuple[str, int, int]] = []
    found = retrieval.run([first, second], progress=lambda *each: told.append(each))["sets"]
    assert list(found) == ["few", "other"]
    assert (found["few"]["questions"], found["other"]["questions"]) == (2, 1)
    for method in (retrieval.PRODUCT, plain.FTS5):
        assert found["few"][method] == dict.fromkeys(retrieval.MEASURES, 1.0)
    assert [(done, total) for _, done, total in told] == [(0, 3), (1, 3), (2, 3)]
    assert "lost@20" not in found["few"]


def test_a_half_is_every_second_store_or_of_one_store_every_second_question(
    tmp_path: Path,
) -> None:
    many = written(tmp_path, store("one", FLAT), store("two", WET, FLAT), store("three", WET))
    single = written(tmp_path, store("one", FLAT, WET, WET), name="single")
    for half, counts in (("even", (2, 2)), ("odd", (2, 1))):
        found = retrieval.run([many, single], half=half)["sets"]
        assert tuple(each["questions"] for each in found.values()) == counts
    assert retrieval.run([many])["sets"]["few"]["questions"] == 4


def test_a_floor_loses_evidence_and_keeps_lines_of_others_out(tmp_path: Path) -> None:
    boat = asked("Who sold the boat to the museum?", u0=1)
    path = written(tmp_path, store("one", FLAT), store("two", boat))
    low = retrieval.run([path], floor=0.0)["sets"]["few"]
    assert (low["lost@20"], low["foreign"]) == (0.0, 3.0)
    high = retrieval.run([path], floor=1.0)["sets"]["few"]
    assert high["lost@20"] > 0.0
    assert high["foreign"] == 0.0
    alone = written(tmp_path, store("one", FLAT), name="alone")
    assert retrieval.run([alone], floor=0.0)["sets"]["alone"]["foreign"] is None


@pytest.mark.parametrize("content", ["{", "[1]", '{"units": [], "questions": []}'])
def test_another_file_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text(content)
    with pytest.raises(InvalidInput):
        retrieval.run([path])


def test_what_cannot_be_measured_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot read"):
        retrieval.run([tmp_path / "none.jsonl"])
    with pytest.raises(InvalidInput, match="no question of few"):
        retrieval.run([written(tmp_path, store("one", NOWHERE))])
    with pytest.raises(InvalidInput, match="the same name"):
        retrieval.run([tmp_path / "few.jsonl", tmp_path / "other" / "few.jsonl"])


def test_the_scenes_mark_turns_that_are_there() -> None:
    [scenes] = retrieval.read(SCENES)
    turns = {unit["id"] for unit in scenes["units"]}
    assert (len(turns), len(scenes["questions"])) == (241, 60)
    assert all(each["gold"] and each["gold"].keys() <= turns for each in scenes["questions"])


def test_recall_beats_plain_search_on_scenes_of_several_friends() -> None:
    found = retrieval.run([SCENES])["sets"]["retrieval-scenes"]
    best = max(found[name]["nDCG@10"] for name in plain.NAMES)
    assert found[retrieval.PRODUCT]["nDCG@10"] >= best + 0.15
