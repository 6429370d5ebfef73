"""Statements that differ in one address, version, host or mail address, and in nothing else."""

from __future__ import annotations

import pytest

from memgraph.classification.relation_literals import other_literals, read_literals
from memgraph.classification.relation_minimal import ONE_VALUE
from memgraph.classification.relations import RelationClassifier, RelationGuess, Statement
from memgraph.model.enums import Relation
from memgraph.service.classifiers import relation_classifier

DAY = 86_400_000


@pytest.fixture(scope="module")
def classifier() -> RelationClassifier:
    return relation_classifier()


def guessed(classifier: RelationClassifier, earlier: str, later: str) -> RelationGuess:
    [guess] = classifier.classify([(Statement(earlier, 0), Statement(later, 9 * DAY))])
    return guess


@pytest.mark.parametrize(
    ("form", "one", "other", "kind"),
    [
        ("The harbour network has the range {}.", "10.4.0.0/16", "10.9.0.0/16", "network"),
        ("The range of the harbour network is {}.", "10.4.0.0/16", "10.9.0.0/16", "network"),
        ("The harbour network uses the CIDR block {}.", "fd00:4::/64", "fd00:9::/64", "network"),
        ("The address of the harbour gate is {}.", "10.4.0.4", "10.4.0.9", "address"),
        ("The harbour proxy has the private address {}.", "fd00:4::53", "fd00:4::54", "address"),
        ("The harbour's gateway is set to {}.", "10.4.0.1", "10.4.0.254", "address"),
        ("The tide service runs on version {}.", "2.4.1", "2.5.0", "version"),
        ("The tide service runs Postgres {}.", "15.3.1", "16.0.2", "version"),
        ("Terraform is pinned to {} here.", "0.11.7", "0.12.1", "version"),
        ("We use version {} of the parser.", "v1.4.2", "v1.5.0", "version"),
        ("The hostname of the tide table is {}.", "db1.example.org", "db2.example.org", "host"),
        ("The tide table is reachable at {}.", "tide.example.org", "sea.example.org", "host"),
        ("The harbour office mailbox is {}.", "ops@example.org", "night@example.org", "mail"),
    ],
)
def test_another_value_of_what_a_thing_has_one_of_is_a_contradiction(
    classifier: RelationClassifier, form: str, one: str, other: str, kind: str
) -> None:
    earlier, later = form.format(one), form.format(other)
    guess = guessed(classifier, earlier, later)
    assert guess.relation is Relation.CONTRADICTS
    assert guess.reasons[:2] == (ONE_VALUE, f"value_differs:{kind}")
    assert "other_version" not in guess.reasons
    assert guessed(classifier, earlier, f"We agreed that {later}").relation is Relation.CONTRADICTS
    assert guessed(classifier, earlier, earlier).relation is not Relation.CONTRADICTS


def test_a_word_of_change_makes_another_address_an_update(classifier: RelationClassifier) -> None:
    old = "The harbour network has the range 10.4.0.0/16."
    new = "The harbour network now has the range 10.9.0.0/16."
    assert guessed(classifier, old, new).relation is Relation.UPDATES
    assert guessed(classifier, new, old).relation is not Relation.CONTRADICTS


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (
            "The harbour network has the ranges 10.4.0.0/16, 10.5.0.0/16.",
            "The harbour network has the ranges 10.4.0.0/16, 10.6.0.0/16.",
        ),
        ("The networks have the ranges 10.4.0.0/16.", "The networks have the ranges 10.5.0.0/16."),
        (
            "The harbour network has the range 10.4.0.0/16.",
            "The harbour network also has the range 10.9.0.0/16.",
        ),
        (
            "The staging network has the range 10.4.0.0/16.",
            "The production network has the range 10.9.0.0/16.",
        ),
        ("The gate has the same address 10.4.0.4 in the net 10.4.0.0/16.",
         "The gate has the same address 10.4.0.5 in the net 10.4.0.0/16."),
        ("db1.example.org has the address 10.4.0.1.", "db2.example.org has the address 10.4.0.2."),
        # One range, written in two ways.
        (
            "The harbour network has the range 10.4.0.0/16.",
            "The harbour network has the range 10.4.7.0/16.",
        ),
        ("The harbour proxy has the address fd00:4::53.",
         "The harbour proxy has the address fd00:4:0::0053."),
    ],
)  # fmt: skip
def test_lists_other_things_and_other_notations_are_none(
    classifier: RelationClassifier, earlier: str, later: str
) -> None:
    guess = guessed(classifier, earlier, later)
    assert guess.relation not in (Relation.CONTRADICTS, Relation.UPDATES)
    assert ONE_VALUE not in guess.reasons


@pytest.mark.parametrize(
    "form",
    [
        "The harbour network has a range {}/16.",
        "The harbour network has another range {}/16.",
        "The harbour network has the second range {}/16.",
        "The harbour network has the subnet {}/16.",
        "The harbour network had the range {}/16.",
        "The harbour network has the range {}/16 and others.",
        "Does the harbour network have the range {}/16?",
        "The range is {}/16.",
        "Its range is {}/16.",
        "That network has the range {}/16.",
        "Each network of the harbour has the range {}/16.",
        "One of the harbour's addresses is {}.",
        "The address of a harbour gate is {}.",
        "The harbour firewall blocks the address {}.",
        "Traffic to the harbour is allowed from {}/16.",
        "The tide service supports version {}.",
        "The leak of the tide service is in version {}.",
        "Release {} of the tide service is supported by us.",
        "The next version of the tide service is {}.",
    ],
)
def test_what_a_thing_may_have_several_of_is_none(
    classifier: RelationClassifier, form: str
) -> None:
    guess = guessed(classifier, form.format("10.4.0.0"), form.format("10.9.0.0"))
    assert guess.relation not in (Relation.CONTRADICTS, Relation.UPDATES)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tide.staging.example.org", "tide.prod.example.org"),
        ("notes.md", "plan.md"),
        ("tide.example.org", "TIDE.example.org"),
    ],
)
def test_hosts_of_two_environments_and_files_are_none(
    classifier: RelationClassifier, one: str, other: str
) -> None:
    form = "The tide table is reachable at {}."
    guess = guessed(classifier, form.format(one), form.format(other))
    assert guess.relation is not Relation.CONTRADICTS


def test_statements_with_other_addresses_are_no_duplicates(classifier: RelationClassifier) -> None:
    earlier = "The sender is a@example.org or b@example.org."
    later = "The sender is a@example.org or c@example.org."
    assert other_literals(earlier, later)
    assert guessed(classifier, earlier, later).relation is not Relation.DUPLICATE


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from 10.4.0.0/16 to fd00:4::/64.", [("network", "10.4.0.0/16"),
                                              ("network", "fd00:4::/64")]),
        ("at 10.4.0.4, v1.2 and 1.2.3-rc.1", [("address", "10.4.0.4"), ("version", "1.2"),
                                              ("version", "1.2.3-rc.1")]),
        ("version 1.2.3.4 or 999.2.3.4", [("version", "1.2.3.4"), ("version", "999.2.3.4")]),
        ("ask Ops@Example.org at wiki.example.org", [("mail", "ops@example.org"),
                                                     ("host", "wiki.example.org")]),
        ("at 10:30:00 on 31.12.2026, notes.md, 15.3 euros, std::list, 300.1.1.1/8", []),
        ("https://example.org/path and 10.4.0.4:8080", []),
    ],
)  # fmt: skip
def test_which_values_are_read(text: str, found: list[tuple[str, str]]) -> None:
    assert [(each.kind, each.value) for each in read_literals(text)] == found
