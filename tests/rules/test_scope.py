"""Visibility, and that the predicate handed to storage says the same as the rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given, strategies as st

from memgraph.errors import AccessDenied, InvalidInput
from memgraph.model.enums import Scope, Sensitivity
from memgraph.rules.scope import (
    DEFAULT_VIEWER,
    ScopeFacts,
    ScopePredicate,
    Viewer,
    VisibilityReason,
    narrow,
    predicate,
    visible,
)

IDS = ["a", "b", "c"]
id_sets = st.frozensets(st.sampled_from(IDS))
of_whom = st.sampled_from([(None, True), *product(IDS, (True, False))])
viewers = st.builds(
    lambda whom, **fields: Viewer(agent_id=whom[0], shared=whom[1], **fields),
    of_whom,
    clearance=st.sampled_from(Sensitivity),
    project_ids=id_sets,
    session_ids=id_sets,
    scopes=st.frozensets(st.sampled_from(Scope)),
)
memories = st.builds(
    ScopeFacts,
    scope=st.sampled_from([*Scope, "team", "", None]),
    scope_id=st.none() | st.sampled_from([*IDS, ""]),
    sensitivity=st.sampled_from([*Sensitivity, "internal", "TopSecret", None]),
    agent_id=st.none() | st.sampled_from(IDS),
)


def facts(
    scope: str | None = "global",
    scope_id: str | None = None,
    sensitivity: str | None = "Internal",
    agent_id: str | None = None,
) -> ScopeFacts:
    return ScopeFacts(scope, scope_id, sensitivity, agent_id)


def holds(rule: ScopePredicate, row: ScopeFacts) -> bool:
    """The WHERE clause, as a database evaluates it: NULL equals nothing."""
    granted = any(
        row.scope == scope and (scope_id is None or row.scope_id == scope_id)
        for scope, scope_id in rule.grants
    )
    unowned = row.agent_id is None and rule.shared
    agent = rule.agent_id is None or unowned or row.agent_id == rule.agent_id
    return row.sensitivity in {one.value for one in rule.sensitivities} and granted and agent


@given(viewers, memories)
def test_rule_and_predicate_agree(viewer: Viewer, memory: ScopeFacts) -> None:
    assert visible(viewer, memory).allowed == holds(predicate(viewer), memory)


@pytest.mark.parametrize(
    ("memory", "reason"),
    [
        (facts(), VisibilityReason.ALLOWED),
        (facts(scope_id="anything"), VisibilityReason.ALLOWED),
        (facts(sensitivity="Confidential"), VisibilityReason.SENSITIVITY_ABOVE_CLEARANCE),
        (facts(sensitivity="secret"), VisibilityReason.SENSITIVITY_UNKNOWN),
        (facts(sensitivity=None), VisibilityReason.SENSITIVITY_UNKNOWN),
        (facts("team", "a"), VisibilityReason.SCOPE_UNKNOWN),
        (facts(None), VisibilityReason.SCOPE_UNKNOWN),
        (facts("project"), VisibilityReason.SCOPE_ID_MISSING),
        (facts("session", ""), VisibilityReason.SCOPE_ID_MISSING),
        (facts("project", "p1"), VisibilityReason.SCOPE_ID_NOT_GRANTED),
        (facts(agent_id="anyone"), VisibilityReason.ALLOWED),
    ],
)
def test_the_default_viewer(memory: ScopeFacts, reason: VisibilityReason) -> None:
    assert visible(DEFAULT_VIEWER, memory) is reason


def test_a_scope_that_was_not_asked_for_is_left_out() -> None:
    viewer = Viewer(project_ids=frozenset({"x"}), scopes=frozenset({Scope.PROJECT}))
    assert visible(viewer, facts()) is VisibilityReason.SCOPE_NOT_REQUESTED
    assert predicate(viewer).grants == ((Scope.PROJECT, "x"),)


def test_an_agent_may_see_what_is_its_own_alone() -> None:
    viewer = Viewer(agent_id="a1", shared=False)
    assert visible(viewer, facts(agent_id="a1")).allowed
    assert visible(viewer, facts()) is VisibilityReason.OTHER_AGENT
    with pytest.raises(InvalidInput):
        Viewer(shared=False)


@pytest.mark.parametrize("kind", [list, tuple, set, iter])
def test_any_collection_of_ids_is_a_grant(kind: Callable[[list[str]], Any]) -> None:
    viewer = Viewer(
        project_ids=kind(["p1", "p2"]), session_ids=kind(["s1"]), scopes=kind(["session"])
    )
    assert viewer == Viewer(
        project_ids=frozenset({"p1", "p2"}),
        session_ids=frozenset({"s1"}),
        scopes=frozenset({Scope.SESSION}),
    )
    assert hash(viewer) == hash(replace(viewer))


@pytest.mark.parametrize(
    "wrong",
    [
        {"project_ids": "p1"},
        {"session_ids": "s1"},
        {"session_ids": b"s1"},
        {"session_ids": None},
        {"project_ids": [7]},
        {"project_ids": [["p1"]]},
        {"scopes": "global"},
        {"scopes": ["team"]},
        {"clearance": "Secret"},
        {"agent_id": 7},
        {"agent_id": ""},
        {"project_ids": frozenset({""})},
        {"session_ids": frozenset({"a", ""})},
    ],
)
def test_a_slip_grants_nothing(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as caught:
        Viewer(**wrong)
    assert caught.value.details["field"] in wrong


@pytest.mark.parametrize("clearance", Sensitivity)
def test_clearance_is_a_ladder(clearance: Sensitivity) -> None:
    shown = [
        one for one in Sensitivity if visible(Viewer(clearance), facts(sensitivity=one)).allowed
    ]
    assert shown == list(Sensitivity)[: clearance.level + 1]


def test_predicate_is_sorted_and_says_nothing_for_an_empty_grant() -> None:
    viewer = Viewer(project_ids=frozenset("cab"), scopes=frozenset({Scope.PROJECT}))
    assert [one for _, one in predicate(viewer).grants] == ["a", "b", "c"]
    assert predicate(Viewer(scopes=frozenset())).grants == ()


GRANTED = Viewer(Sensitivity.INTERNAL, frozenset({"p1", "p2"}), frozenset({"s1"}), agent_id="agent")


def test_narrowing_keeps_what_is_not_mentioned() -> None:
    assert narrow(GRANTED) == GRANTED
    narrowed = narrow(
        GRANTED, clearance=Sensitivity.PUBLIC, project_ids=["p1"], scopes=[Scope.PROJECT]
    )
    assert narrowed == Viewer(
        Sensitivity.PUBLIC,
        frozenset({"p1"}),
        frozenset({"s1"}),
        frozenset({Scope.PROJECT}),
        "agent",
    )


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({"clearance": Sensitivity.CONFIDENTIAL}, "clearance"),
        ({"project_ids": ["p1", "p3"]}, "project_ids"),
        ({"session_ids": ["p1"]}, "session_ids"),
        ({"agent_id": "other"}, "agent_id"),
    ],
)
def test_a_request_beyond_the_grant_is_denied(request_: dict[str, object], field: str) -> None:
    with pytest.raises(AccessDenied) as caught:
        narrow(GRANTED, **request_)  # type: ignore[arg-type]  # one keyword at a time
    assert caught.value.details["field"] == field


@given(viewers, viewers, memories)
def test_narrowing_never_widens(granted: Viewer, asked: Viewer, memory: ScopeFacts) -> None:
    try:
        narrowed = narrow(
            granted,
            clearance=asked.clearance,
            project_ids=asked.project_ids,
            session_ids=asked.session_ids,
            scopes=asked.scopes,
            agent_id=asked.agent_id,
        )
    except AccessDenied:
        return
    assert visible(granted, memory).allowed or not visible(narrowed, memory).allowed
