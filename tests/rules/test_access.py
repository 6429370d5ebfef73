"""What a principal may do and see: never more than it was granted, whatever it asks for."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, strategies as st

from memgraph.clock import MS_PER_DAY
from memgraph.errors import AccessDenied, InvalidInput
from memgraph.model.access import ANY, Narrowing, Permission, Principal
from memgraph.model.enums import Scope, Sensitivity
from memgraph.rules.access import moment_ms, sees_everything, span_ms, viewer_of
from memgraph.rules.scope import ScopeFacts, visible, writable

NOW = 1_767_225_600_000
NAMES = ("a", "b", "c")


def principal(**fields: Any) -> Principal:
    given = {
        "key_id": "0123456789ab",
        "name": "a test",
        "orchestrators": ("orc-1",),
        "permissions": frozenset({Permission.READ}),
    }
    return Principal(**{**given, **fields})


granted_names = st.one_of(st.just((ANY,)), st.lists(st.sampled_from(NAMES), unique=True).map(tuple))
asked_names = st.none() | st.lists(st.sampled_from(NAMES), unique=True).map(tuple)
agents = st.none() | st.sampled_from(("x", "y"))
principals = st.builds(
    principal,
    clearance=st.sampled_from(Sensitivity),
    project_ids=granted_names,
    session_ids=granted_names,
    agent_id=agents,
)
narrowings = st.builds(
    Narrowing,
    project_ids=asked_names,
    session_ids=asked_names,
    agent_id=agents,
    clearance=st.none() | st.sampled_from(Sensitivity),
)
MEMORIES = [
    ScopeFacts(scope.value, None if scope is Scope.GLOBAL else name, level.value, agent)
    for scope, name, level, agent in product(Scope, NAMES, Sensitivity, (None, "x", "y"))
]


def granted(one: Principal, facts: ScopeFacts) -> bool:
    """Whether a key may ever see such a memory, said once more and otherwise."""
    places = {
        Scope.GLOBAL: (ANY,),
        Scope.PROJECT: one.project_ids,
        Scope.SESSION: one.session_ids,
    }[Scope(str(facts.scope))]
    return (
        Sensitivity(str(facts.sensitivity)).level <= one.clearance.level
        and (ANY in places or facts.scope_id in places)
        and (one.agent_id is None or facts.agent_id in (None, one.agent_id))
    )


@given(principals, narrowings)
def test_no_request_sees_or_writes_more_than_its_key_was_granted(
    one: Principal, narrowing: Narrowing
) -> None:
    try:
        viewer = viewer_of(one, narrowing)
    except AccessDenied:
        return
    for facts in MEMORIES:
        seen = visible(viewer, facts).allowed
        assert not seen or granted(one, facts)
        assert writable(viewer, facts).allowed is seen
    assert viewer.confined


@pytest.mark.parametrize(
    ("fields", "narrowing", "field"),
    [
        ({"project_ids": ("p1",)}, {"project_ids": ("p2",)}, "project_ids"),
        ({}, {"session_ids": ("s1",)}, "session_ids"),
        ({"agent_id": "x"}, {"agent_id": "y"}, "agent_id"),
        ({}, {"clearance": Sensitivity.RESTRICTED}, "clearance"),
        ({"project_ids": (ANY,)}, {"project_ids": (ANY,)}, "project_ids"),
    ],
)
def test_a_request_that_reaches_too_far_is_told_where(
    fields: dict[str, Any], narrowing: dict[str, Any], field: str
) -> None:
    with pytest.raises(AccessDenied) as raised:
        viewer_of(principal(**fields), Narrowing(**narrowing))
    assert raised.value.details == {"field": field}


@pytest.mark.parametrize(
    ("fields", "everything"),
    [
        ({}, True),
        ({"clearance": Sensitivity.CONFIDENTIAL}, False),
        ({"project_ids": ("p1",)}, False),
        ({"session_ids": ()}, False),
        ({"agent_id": "x"}, False),
    ],
)
def test_a_copy_is_for_who_sees_everything(fields: dict[str, Any], everything: bool) -> None:
    given = {"clearance": Sensitivity.RESTRICTED, "project_ids": (ANY,), "session_ids": (ANY,)}
    assert sees_everything(principal(**{**given, **fields})) is everything


@pytest.mark.parametrize(
    ("text", "ms"),
    [("90d", 90 * MS_PER_DAY), ("12h", 43_200_000), ("30m", 1_800_000), ("0d", 0)],
)
def test_a_span_is_days_hours_or_minutes(text: str, ms: int) -> None:
    assert span_ms(text) == ms
    assert moment_ms(text, now_ms=NOW) == NOW + ms


@pytest.mark.parametrize(
    "text", ["", "d", "9", "-1d", "1.5h", "1d ", "1w", "٣d", "1d12h", "9" * 30]
)
def test_anything_else_is_no_span(text: str) -> None:
    with pytest.raises(InvalidInput):
        span_ms(text)


def test_a_moment_may_be_a_time() -> None:
    assert moment_ms("2026-01-01T00:00:00Z", now_ms=0) == NOW
    for wrong in ("tomorrow", "999999999d"):
        with pytest.raises(InvalidInput):
            moment_ms(wrong, now_ms=NOW)
