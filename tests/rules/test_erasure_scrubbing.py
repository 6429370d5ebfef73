"""What is looked for after an erasure, and what stays of JSON when it is scrubbed."""

from __future__ import annotations

import json

from memgraph.audit.search_terms import SearchTerms
from memgraph.rules.erasure import MARK, scrubbed, strings_of, unsought
from memgraph.rules.sources import line_spans


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


def test_a_string_that_begins_within_an_escape_goes_and_the_json_stays() -> None:
    needles = SearchTerms(["name of the vault", "nothing else"])
    told = {"name": 1, "a": "so:\name of the vault", "b": ["\nothing else"], "c": "\nsaid"}
    left = scrubbed(json.dumps(told), needles.scrub)
    assert json.loads(left) == {"name": 1, "a": f"so:{MARK}", "b": [MARK], "c": "\nsaid"}
    assert needles.found_in(left.encode()) == set()


def test_a_few_letters_within_an_id_are_no_hit() -> None:
    needles = SearchTerms(["ACME", "beef", "4711"])
    for each in ("fact_01M81YP476PSACME344R4BZPPC", "ab" * 20 + "beef" + "01" * 8, "1794711662064"):
        assert needles.found_in(each.encode()) == set()
    assert needles.found_in(b"id fact_01M81YP476PSWP2344R4BZPPCSACME, beef: 4711") == {0, 1, 2}


def test_a_string_in_a_file_of_sixteen_bits_is_found() -> None:
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        assert SearchTerms(["The key is under the pot"]).found_in(
            "so: The key is under the pot".encode(encoding)
        ) == {0}


def test_codes_and_what_follows_a_label_are_looked_for() -> None:
    assert strings_of(["PIN is 9437", "hunter2", "thank you", "word"]) == ["PIN is 9437", "hunter2"]
    assert "The key is under the pot" in strings_of(["Ada: Fact: The key is under the pot"])
    assert unsought(["PIN is 9437", "thank you", "thank you ", ""], ["PIN is 9437"]) == 1


def test_lines_lie_where_they_are_counted() -> None:
    for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
        start = "" if encoding == "utf-8" else "\ufeff"
        lines = [f"{start}a\U0001f600", "", "b", "c\u20ac", "d", ""]
        data = "".join(
            each + end
            for each, end in zip(lines, ("\r\n", "\r", "\n", "\u2028", "\x85", ""), strict=True)
        ).encode(encoding)
        assert [data[a:b].decode(encoding) for a, b in line_spans(data)] == lines
