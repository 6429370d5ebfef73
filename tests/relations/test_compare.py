"""Statements compared: the same, changed, or contradicted."""

from memgraph.model.enums import Relation
from memgraph.relations import Statement, compare, quote


def test_the_same_words_are_a_duplicate() -> None:
    finding = compare(Statement("Backups run nightly."), Statement("backups run  nightly"))
    assert finding is not None
    assert finding.relation is Relation.DUPLICATE
    assert finding.reason


def test_first_persons_of_two_speakers_are_not_compared() -> None:
    assert (
        compare(Statement("I like tea.", speaker="Ann"), Statement("I like tea.", speaker="Ben"))
        is None
    )


def test_a_quotation_is_read_as_its_speakers_words() -> None:
    content = quote("Ann", "I live in “old” Oslo.", "2024-01-10")
    assert content == 'Ann: “I live in "old" Oslo.” (2024-01-10)'
    assert Statement.of(content, 5) == Statement('I live in "old" Oslo.', 5, "Ann")
