"""Trust rules: what may be replaced by what, and the quotas of sources."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.config.schema import CaptorTiers, QuotaSettings, TrustSettings
from memgraph.model.enums import CapturedBy, SourceName, SourceType, TrustTier
from memgraph.rules.trust import (
    AssignedTrust,
    CaptureFacts,
    NamedSource,
    Quota,
    TrustFacts,
    TrustRules,
    ceiling,
    floors,
    lowest,
)

TIERS = st.sampled_from(TrustTier)
NO_QUOTAS = QuotaSettings(low=0)


def captured(**names: str) -> CaptureFacts:
    return CaptureFacts(SourceType.MANUAL, CapturedBy.USER, **names)


def run(name: str) -> CaptureFacts:
    return captured(workflow_run_id=name)


def trust(
    told: Mapping[tuple[str, str], TrustTier | AssignedTrust], settings: TrustSettings
) -> TrustRules:
    return TrustRules.of(
        settings,
        {
            NamedSource(SourceName(kind), name): one
            if isinstance(one, AssignedTrust)
            else AssignedTrust(one)
            for (kind, name), one in told.items()
        },
    )


def runs(tiers: Mapping[str, TrustTier]) -> TrustRules:
    return trust({("run", name): tier for name, tier in tiers.items()}, TrustSettings())


class TestTiers:
    def test_the_nearest_folder_that_was_told_counts(self) -> None:
        told = {("path", "/in"): TrustTier.LOW, ("path", "/in/board"): TrustTier.HIGH}
        made = trust(told, TrustSettings())
        tiers = {
            path: made.tier(captured(source_path=path))
            for path in ("/in/x.md", "/in/board/x.md", "/in/board", "/inner/x.md", "/in", "x.md")
        }
        assert tiers == {
            "/in/x.md": TrustTier.LOW,
            "/in/board/x.md": TrustTier.HIGH,
            "/in/board": TrustTier.HIGH,
            "/inner/x.md": TrustTier.STANDARD,
            "/in": TrustTier.LOW,
            "x.md": TrustTier.STANDARD,
        }

    def test_the_root_is_a_folder_too(self) -> None:
        made = trust({("path", "/"): TrustTier.LOW}, TrustSettings())
        assert made.tier(captured(source_path="/a/b.md")) is TrustTier.LOW

    def test_of_several_names_the_lowest_counts(self) -> None:
        made = trust(
            {("run", "r"): TrustTier.HIGH, ("conversation", "c"): TrustTier.LOW}, TrustSettings()
        )
        assert made.tier(captured(workflow_run_id="r", conversation_id="c")) is TrustTier.LOW
        assert made.tier(captured(workflow_run_id="r", session_id="c")) is TrustTier.LOW
        assert made.tier(captured(workflow_run_id="r", conversation_id="d")) is TrustTier.HIGH

    def test_settings_give_the_lower_of_two(self) -> None:
        made = TrustRules.of(TrustSettings(captured_by=CaptorTiers(extractor="low", user="high")))
        assert made.tier(CaptureFacts(SourceType.MANUAL, CapturedBy.EXTRACTOR)) is TrustTier.LOW
        assert made.tier(CaptureFacts(SourceType.MANUAL, CapturedBy.USER)) is TrustTier.STANDARD

    def test_it_is_uniform_until_somebody_differs(self) -> None:
        assert TrustRules.of(TrustSettings()).uniform
        assert trust({("run", "r"): TrustTier.STANDARD}, TrustSettings()).uniform
        assert not trust({("run", "r"): TrustTier.LOW}, TrustSettings()).uniform
        assert not TrustRules.of(TrustSettings(captured_by=CaptorTiers(extractor="low"))).uniform


class TestQuotas:
    def test_nobody_counts_where_no_tier_in_use_has_one(self) -> None:
        assert TrustRules.of(TrustSettings()).unlimited
        assert not trust({("run", "r"): TrustTier.LOW}, TrustSettings()).unlimited
        low = trust({("run", "r"): TrustTier.LOW}, TrustSettings(max_memories=NO_QUOTAS))
        assert low.unlimited
        told = {("run", "r"): AssignedTrust(TrustTier.STANDARD, 0)}
        assert not trust(told, TrustSettings(max_memories=NO_QUOTAS)).unlimited

    def test_each_name_and_each_folder_that_was_told_has_one(self) -> None:
        told = {
            ("path", "/in"): AssignedTrust(TrustTier.LOW, 5),
            ("path", "/in/a"): AssignedTrust(TrustTier.STANDARD),
            ("conversation", "c"): AssignedTrust(TrustTier.LOW),
        }
        settings = TrustSettings(max_memories=QuotaSettings(low=9))
        source = captured(source_path="/in/a/x.md", conversation_id="c")
        assert trust(told, settings).quotas(source) == [
            Quota(NamedSource(SourceName.CONVERSATION, "c"), 9),
            Quota(NamedSource(SourceName.PATH, "/in"), 5),
            Quota(NamedSource(SourceName.PATH, "/in/a/x.md"), 9),
        ]


class TestFloors:
    def test_a_long_way_round_washes_nothing(self) -> None:
        standings = {"0": TrustFacts(run("evil"))}
        for n in range(1, 3_000):
            standings[str(n)] = TrustFacts(run("good"), grounds=(str(n - 1),))
        assert floors(["2999"], standings, runs({"evil": TrustTier.LOW})) == {"2999": TrustTier.LOW}

    def test_what_could_not_be_looked_at_is_not_trusted(self) -> None:
        standings = {"a": TrustFacts(run("good"), grounds=("unread",))}
        assert floors(["a", "gone"], standings, runs({"x": TrustTier.HIGH})) == {
            "a": TrustTier.LOW,
            "gone": TrustTier.LOW,
        }

    def test_a_circle_ends(self) -> None:
        standings = {
            "a": TrustFacts(run("good"), grounds=("b",)),
            "b": TrustFacts(run("good"), grounds=("a",)),
        }
        found = floors(["a", "b"], standings, runs({"good": TrustTier.HIGH}))
        assert found == {"a": TrustTier.HIGH, "b": TrustTier.HIGH}

    def test_saying_it_again_neither_lowers_nor_lifts(self) -> None:
        chat, forum = captured(conversation_id="chat"), captured(conversation_id="forum")
        made = trust({("conversation", "forum"): TrustTier.LOW}, TrustSettings())
        standings = {
            "fact": TrustFacts(chat, supports=(forum,), grounds=("t1",)),
            "washed": TrustFacts(chat, supports=(forum,), grounds=("t1", "t2")),
            "t1": TrustFacts(captured(session_id="chat")),
            "t2": TrustFacts(captured(session_id="forum")),
        }
        found = floors(["fact", "washed"], standings, made)
        assert found == {"fact": TrustTier.STANDARD, "washed": TrustTier.LOW}

    @given(st.data())
    def test_it_is_the_lowest_of_all_that_it_stands_on(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(1, 12))
        tiers = {f"r{n}": data.draw(TIERS) for n in range(number)}
        standings = {}
        for n in range(number):
            before = [str(one) for one in range(n)]
            grounds = data.draw(st.sets(st.sampled_from(before))) if before else set()
            standings[str(n)] = TrustFacts(run(f"r{n}"), grounds=tuple(sorted(grounds)))
        found = floors(standings, standings, runs(tiers))
        for one, standing in standings.items():
            below = [found[each] for each in standing.grounds]
            assert found[one] is lowest([tiers[f"r{one}"], *below])


class TestCeiling:
    @given(TIERS, st.lists(TIERS, max_size=4))
    def test_the_best_source_protects(self, own: TrustTier, further: list[TrustTier]) -> None:
        tiers = {"own": own} | {f"s{n}": tier for n, tier in enumerate(further)}
        supports = tuple(run(f"s{n}") for n in range(len(further)))
        found = ceiling(TrustFacts(run("own"), supports=supports), runs(tiers))
        assert found.level == max(each.level for each in (own, *further))


@pytest.mark.parametrize("name", ["/a/b", "a/b", "/"])
def test_a_told_path_is_told_for_what_lies_below(name: str) -> None:
    made = trust({("path", name): TrustTier.LOW}, TrustSettings())
    assert made.is_told(captured(source_path=f"{name.rstrip('/')}/x"))
    assert not made.is_told(run("x"))
