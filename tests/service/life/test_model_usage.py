"""What language models use is counted by month, in the database, and bounded by a setting."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from model_server import Behaviour, ModelServer

from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.errors import MonthlyLimitReached
from memgraph.model.enums import JobState, ModelUse
from memgraph.model.jobs import ServiceReadiness
from memgraph.operations.life.enrichment import BATCH
from memgraph.operations.life.models import MeteredCompletion
from memgraph.providers.fake import FakeCompletion
from memgraph.surfaces.metrics import PrometheusMeters

pytestmark = pytest.mark.usefixtures("asks_once")

NO_NAMES = '{"entities": []}'
Open = Callable[..., MemoryService]


@pytest.fixture
def open_service(tmp_path: Path, server: ModelServer, clock: FixedClock) -> Iterator[Open]:
    services = []

    def build(**changed: Any) -> MemoryService:
        meters = {"meters": changed.pop("meters")} if "meters" in changed else {}
        config = {
            "memory.embedding.provider": "none",
            "memory.llm.provider": "litellm/openai/any",
            "memory.llm.api_base": server.url,
            "memory.llm.api_key_from": "KEY",
            "memory.llm.timeout_s": 2.0,
        } | {f"memory.{key}": value for key, value in changed.items()}
        service = MemoryService(
            tmp_path,
            config=config,
            clock=clock,
            environ={"KEY": "sk-x"},
            background=False,
            **meters,
        )
        services.append(service)
        return service

    yield build
    for service in services:
        service.close()


def answers(text: str, tokens_in: int, tokens_out: int) -> Behaviour:
    """A chat completion whose server reports its tokens."""
    status, body, headers = ModelServer.writes(text)({})
    usage = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out}
    body["usage"] = usage | {"total_tokens": tokens_in + tokens_out}
    return lambda request: (status, body, headers)


def ana(service: MemoryService, *texts: str) -> Orchestrator:
    orchestrator = service.orchestrator("ana", create=True)
    for text in texts:
        orchestrator.remember(text)
    return orchestrator


def usage_of(orchestrator: Orchestrator) -> dict[str, Any]:
    counts: dict[str, Any] = orchestrator.maintenance.stats()["model"]
    return counts


def degraded(service: MemoryService) -> list[str]:
    codes: list[str] = service.health("ana")["degraded"]
    return codes


def test_what_a_job_uses_is_in_its_report_in_the_stats_and_in_the_metrics(
    server: ModelServer, open_service: Open
) -> None:
    meters = PrometheusMeters()
    service = open_service(meters=meters)
    orchestrator = ana(service, "the shed is green", "the fence is red")
    server.behave(answers(NO_NAMES, 300, 20))
    run = orchestrator.jobs.run("enrichment")
    expected = {"calls": 1, "tokens_in": 300, "tokens_out": 20}
    assert expected.items() <= run.counts.items()
    counts = usage_of(orchestrator)
    assert counts["month"] == "2026-01"
    assert expected.items() <= counts.items()
    assert counts["by_use"] == {"enrichment": expected}
    lines = meters.exposition(ServiceReadiness(status="ready"))[0].decode()
    assert 'memgraph_model_calls_total{outcome="ok",use="enrichment"} 1.0' in lines
    assert 'memgraph_model_tokens_total{direction="in",use="enrichment"} 300.0' in lines


def test_tokens_that_a_server_does_not_report_are_estimated(
    server: ModelServer, open_service: Open
) -> None:
    orchestrator = ana(open_service(), "the shed is green")
    status, body, headers = ModelServer.writes(NO_NAMES)({})
    del body["usage"]
    server.behave(lambda request: (status, body, headers))
    orchestrator.jobs.run("enrichment")
    counts = usage_of(orchestrator)
    sent = json.dumps(server.requests[0]["messages"])
    assert counts["calls"] == 1
    assert len(sent) / 8 < counts["tokens_in"] < len(sent)
    assert 0 < counts["tokens_out"] < 20


def test_several_services_on_one_database_add_up_their_calls(open_service: Open) -> None:
    services = [open_service() for _ in range(3)]
    orchestrator = ana(services[0])

    def call(service: MemoryService) -> None:
        with service.opened("ana") as opened:
            model = MeteredCompletion(FakeCompletion([{}] * 10), opened.model_meter, ModelUse.ASK)
            for _ in range(10):
                model.complete_json("system", "user", {})

    with ThreadPoolExecutor() as threads:
        list(threads.map(call, services))
    assert usage_of(orchestrator)["by_use"]["ask"]["calls"] == 30


def test_a_month_whose_tokens_are_used_up_refuses_calls_and_nothing_else(
    server: ModelServer, open_service: Open, clock: FixedClock
) -> None:
    service = open_service(**{"llm.monthly_tokens": 300})
    orchestrator = ana(service, *(f"the shed has {number} doors" for number in range(BATCH + 1)))
    server.behave(answers(NO_NAMES, 300, 20))
    run = orchestrator.jobs.run("enrichment")
    assert (run.state, run.error_code) == (JobState.FAILED, MonthlyLimitReached.code)
    assert len(server.requests) == 1
    assert MonthlyLimitReached.code in degraded(service)
    orchestrator.remember("the roof is black")
    assert orchestrator.recall("roof").items[0].memory.content == "the roof is black"
    clock.advance(days=31)
    assert MonthlyLimitReached.code not in degraded(service)
    server.behave(answers(NO_NAMES, 10, 2))
    assert orchestrator.jobs.run("enrichment").counts["enriched"] == 2
    assert usage_of(orchestrator)["month"] == "2026-02"


def test_health_reports_a_failing_model_until_a_call_succeeds(
    server: ModelServer, open_service: Open
) -> None:
    service = open_service()
    orchestrator = ana(service, "the shed is green")
    server.behave(server.fails(500))
    orchestrator.jobs.run("enrichment")
    assert "model.failing" in degraded(service)
    assert usage_of(orchestrator)["by_use"]["enrichment"] == {
        "calls": 1,
        "tokens_in": 0,
        "tokens_out": 0,
    }
    assert "model.failing" in open_service().health("ana")["degraded"]
    server.behave(answers(NO_NAMES, 10, 2))
    orchestrator.jobs.run("enrichment")
    assert "model.failing" not in degraded(service)


def test_a_request_that_timed_out_counts_as_read(server: ModelServer, open_service: Open) -> None:
    orchestrator = ana(open_service(**{"llm.timeout_s": 0.2}), "the shed is green")
    server.behave(server.hangs)
    orchestrator.jobs.run("enrichment")
    assert usage_of(orchestrator)["tokens_in"] > 100
