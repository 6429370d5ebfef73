"""The embedding outbox: nothing is lost, what fails is tried again, what returns is done once."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.errors import ProviderAnswerInvalid, ProviderUnavailable
from memgraph.operations.write.embedding import LONGEST_PAUSE_MS, MAX_REFUSALS, pause_ms
from memgraph.providers.fake import FakeEmbedding

Make = Callable[..., MemoryService]


@pytest.fixture
def fake() -> FakeEmbedding:
    return FakeEmbedding(dimensions=64)


@pytest.fixture
def make(tmp_path: Path, clock: FixedClock, fake: FakeEmbedding) -> Make:
    def opened(provider: FakeEmbedding | None = fake, **options: object) -> MemoryService:
        return MemoryService(
            tmp_path, clock=clock, embedding=provider, environ={}, background=False, **options
        )

    return opened


def states(orc: Orchestrator) -> dict[str, int]:
    return orc.maintenance.embeddings_status().states


def test_what_is_pending_survives_a_restart(make: Make) -> None:
    with make() as service:
        orc = service.orchestrator("o", create=True)
        orc.remember("The kiln is hot.")
        assert states(orc) == {"pending": 1, "ready": 0, "failed": 0}
    with make() as service:
        orc = service.orchestrator("o")
        assert orc.settle().embedded.ready == 1
        assert states(orc) == {"pending": 0, "ready": 1, "failed": 0}


def test_a_provider_that_is_down_is_asked_again_later_and_then_once(
    make: Make, fake: FakeEmbedding, clock: FixedClock
) -> None:
    with make() as service:
        orc = service.orchestrator("o", create=True)
        orc.remember_many({"content": f"text {n}"} for n in range(3))
        fake.fail_with = ProviderUnavailable("down")
        told = orc.settle().embedded
        assert (told.ready, told.put_off, told.error_code) == (0, 3, "provider.unavailable")
        asked = len(fake.calls)
        assert orc.settle().embedded.put_off == 0
        assert len(fake.calls) == asked, "put off means put off"
        fake.fail_with = None
        clock.advance(ms=pause_ms(0))
        assert orc.settle().embedded.ready == 3
        assert orc.settle().embedded.ready == 0
        assert states(orc) == {"pending": 0, "ready": 3, "failed": 0}
    assert [pause_ms(n) for n in range(3)] == [1_000, 2_000, 4_000]
    assert pause_ms(1_000) == LONGEST_PAUSE_MS


class Picky(FakeEmbedding):
    """Refuses every batch with a certain text in it."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if any("poison" in text for text in texts):
            raise ProviderAnswerInvalid("no")
        return super().embed(texts)


def test_one_text_that_spoils_the_batch_is_found_and_given_up(
    make: Make, clock: FixedClock
) -> None:
    with make(Picky(dimensions=64)) as service:
        orc = service.orchestrator("o", create=True)
        # In the last one there is nothing to embed.
        orc.remember_many({"content": text} for text in ("good", "poison", "fine", "\u200b\u2060"))
        for _ in range(MAX_REFUSALS + 1):
            orc.settle()
            clock.advance(ms=LONGEST_PAUSE_MS)
        assert states(orc) == {"pending": 0, "ready": 2, "failed": 2}
        assert orc.settle().embedded.failed == 0
        assert orc.maintenance.retry_embeddings() == 2
        assert states(orc)["pending"] == 2


@pytest.mark.parametrize("same_name", [False, True])
def test_another_model_is_noticed_and_nothing_is_mixed(make: Make, same_name: bool) -> None:
    with make() as service:
        orc = service.orchestrator("o", create=True)
        orc.remember("one")
        orc.settle()
    narrower = FakeEmbedding(dimensions=32)
    if same_name:
        narrower.model = FakeEmbedding(dimensions=64).model
    with make(narrower) as service:
        orc = service.orchestrator("o")
        orc.remember("two")
        assert orc.settle().embedded.error_code == "embedding.model_changed"
        assert states(orc) == {"pending": 1, "ready": 1, "failed": 0}
        assert service.health("o")["degraded"] == ["embedding.model_changed"]
        [line] = map(json.loads, service.paths("o").log_file.read_text().splitlines())
    assert (line["event"], line["level"]) == ("embedding.model_changed", "warning")
    assert line["stored"] == "fake-64@1" + " with 64 dimensions" * same_name
    assert line["rebuild"] == "memgraph embed o --rebuild"


def test_the_background_drains_by_itself(tmp_path: Path) -> None:
    with MemoryService(tmp_path, embedding=FakeEmbedding(dimensions=64), environ={}) as service:
        orc = service.orchestrator("o", create=True)
        orc.remember_many({"content": f"text {n}"} for n in range(20))
        with service.opened("o") as opened:
            opened.background.wait_idle(timeout_s=30)
        assert states(orc) == {"pending": 0, "ready": 20, "failed": 0}


class Wayward:
    """A provider whose answers hold no number."""

    name, model, dimensions = "wayward", "wayward-1", 2

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[float("nan"), 1.0] for _ in texts]


def test_recall_goes_on_by_text_where_a_given_provider_answers_nonsense(tmp_path: Path) -> None:
    with MemoryService(tmp_path, embedding=Wayward(), background=False) as service:  # type: ignore[arg-type]
        orc = service.orchestrator("o", create=True)
        kept = orc.remember("The boiler is serviced in May.")
        orc.settle()
        bundle = orc.recall("When is the boiler serviced?")
        assert bundle.ids == (kept,)
        assert [each.code for each in bundle.degraded][:1] == ["vector.provider_failed"]
