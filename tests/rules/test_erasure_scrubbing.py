"""What is looked for after an erasure, and what stays of JSON when it is scrubbed."""

from __future__ import annotations

import json

import pytest

from memgraph.rules.erasure import MARK, scrubbed, strings_of
from memgraph.rules.search_terms import SearchTerms


def test_fields_keep_their_names_and_numbers_stay_numbers() -> None:
    scrub = SearchTerms(["reason", "94371234", "Ada Okafor"]).scrub
    told = {"reason": "the reason", "n": 94371234, "Ada Okafor": json.dumps({"reason": ["x"]})}
    assert json.loads(scrubbed(json.dumps(told), scrub)) == {
        "reason": f"the {MARK}",
        "n": 94371234,
        MARK: json.dumps({"reason": ["x"]}),
    }


def test_a_text_without_any_is_the_same_one() -> None:
    text = json.dumps({"b": 1, "a": ["x"]})
    assert scrubbed(text, SearchTerms(["Ada Okafor"]).scrub) is text


def test_a_few_letters_within_an_id_are_no_hit() -> None:
    terms = SearchTerms(["ACME", "beef", "4711"])
    for each in ("fact_01M81YP476PSACME344R4BZPPC", "ab" * 20 + "beef" + "01" * 8, "1794711662064"):
        assert list(terms.hits(each.encode())) == []
        assert terms.found_in(each.encode()) == set()
    text = b"id fact_01M81YP476PSWP2344R4BZPPCSACME, acme, beef: 4711"
    assert {match.string for match in terms.hits(text)} == terms.found_in(text) == {*terms.strings}


def test_a_name_is_a_word_and_not_in_small_letters() -> None:
    terms = SearchTerms(["Will Rose"], names=["Will Rose"])
    for text, found in (("WILL ROSE", 1), ("Will\nRose's", 1), ("will rose", 0), ("Will Rosen", 0)):
        assert len(list(terms.hits(text.encode()))) == found
        assert len(terms.found_in(text.replace("\n", " ").encode())) == found


@pytest.mark.parametrize("size", [0, 1_000])
def test_the_beginning_of_a_long_string_is_enough(size: int) -> None:
    text = "The key of the green cabinet lies under the third pot äöü"
    code, around = f"{text}!", "x" * size
    terms = SearchTerms([text, code], whole=[code])
    data = f"{around}: {text[:40].upper()}…{around}".encode()
    [match] = terms.hits(data)
    assert (match.string, match.complete) == (text, False)
    assert data[match.start : match.end].decode() == text[:40].upper()
    assert terms.found_in(f"{around}{json.dumps(json.dumps(code))}".encode()) == {text, code}
    assert terms.scrub(f"so: {text}") == f"so: {MARK}"


def test_codes_and_what_follows_a_label_are_looked_for() -> None:
    assert strings_of(["PIN is 9437", "hunter2", "thank you", "word"]) == ["PIN is 9437", "hunter2"]
    assert "The key is under the pot" in strings_of(["Ada: Fact: The key is under the pot"])
