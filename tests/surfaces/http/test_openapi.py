"""The OpenAPI document holds: whatever fits it, or nearly so, is answered as it says, and never
with an error of the server's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from itertools import count
from typing import Any

import pytest
import requests
import schemathesis
from citing_model import citing
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis.strategies import one_of
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from serving_worlds import Served, serving

from memgraph import Orchestrator
from memgraph.errors import Conflict, NotFound
from memgraph.model.sources import Document
from memgraph.surfaces.http.app import openapi

HELD = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
LONGEST_TARGET = 60_000
"""Bytes; a longer request line is refused by uvicorn, in words of its own."""


def offered(orc: Orchestrator) -> str:
    """A memory from the folder of which the examples tell."""
    path = str(orc.paths.processed / "mail/offer.md")
    return orc.remember("The offer holds.", source={"source_path": path})


def marked(orc: Orchestrator, known: dict[str, Any]) -> None:
    """A mark, where the example names a contradiction."""
    new, old = (orc.remember(text) for text in ("Open at ten.", "Open at nine."))
    known["edge_id"] = orc.relate(new, "Updates", old, weight=0.9)


def apart(orc: Orchestrator, known: dict[str, Any]) -> None:
    """Two people, where another request may have made them one."""
    with suppress(NotFound):
        orc.entities.remove_alias(known["into"], known["other"], reason="two people")


def together(orc: Orchestrator, known: dict[str, Any]) -> None:
    """A person of two names, where another request may have taken one away."""
    with suppress(Conflict):
        orc.entities.merge(known["entity"], known["alias"], reason="the same person")


PREPARED: Mapping[str, Callable[[Orchestrator, dict[str, Any]], object]] = {
    "accept_change": marked,
    "merge_entities": apart,
    "remove_alias": together,
    "restore": lambda orc, known: orc.retract(known["memory_id"], reason="it was wrong"),
    "reopen_contradiction": lambda orc, known: orc.contradictions.resolve(
        known["edge_id"], winner=known["winner"], reason="asked"
    ),
    "source_info": lambda orc, known: orc.save_episode(
        "When do you close?", session_id="chat-7", source_role="user"
    ),
    "retract_source": lambda orc, known: offered(orc),
    "erase": lambda orc, known: orc.save_episode(
        "When do you open?", session_id="session-7", source_role="user"
    ),
}
"""What comes before some operations."""
ASKED: Mapping[str, dict[str, str]] = {
    "diff": {"since": "2026-01-01", "until": "2026-02-01"},
    "grounds": {"memory_id": "mem_1"},
}
"""Of operations that ask for nothing by themselves."""
TAKES_MORE = {"promote": 403, "get_metrics": 404}
"""A memory of a task that the request names; a server with figures: each has tests of its own."""
HEADERS = {"authorization"}
"""The header that the application reads: of others some are no HTTP, and uvicorn says so."""


NUMBERS = count()
document = schemathesis.openapi.from_dict(deepcopy(openapi()))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("openapi") / "root"
    with citing(), serving(root) as made:
        yield made


@pytest.fixture(scope="module")
def session(served: Served) -> Iterator[requests.Session]:
    with requests.Session() as made:
        made.trust_env = False
        made.headers["authorization"] = f"Bearer {served.key()}"
        yield made


@pytest.fixture(scope="module")
def orc(served: Served) -> Orchestrator:
    return served.orchestrator()


@pytest.fixture(scope="module")
def lasting(orc: Orchestrator) -> dict[str, Any]:
    """Names of what no operation ends."""
    orc.remember("Anna Berg has met Axel Holm in Oslo.")
    orc.remember("Eva Lind has met Ida Falk in Bergen.")
    orc.jobs.run("enrichment")
    orc.entities.merge("Eva Lind", "Ida Falk", reason="the same person")
    orc.save_episode("Good morning.", session_id="talk", source_role="user")
    orc.ingestion.store(Document(sha256="f" * 64, path="notes.md", memories=()))
    people = {
        "into": "Anna Berg",
        "other": "Axel Holm",
        "entity": "Eva Lind",
        "alias": "Ida Falk",
    }
    places = {"orchestrator": orc.name, "agent_id": "ada", "sha256": "f" * 64, "session_id": "talk"}
    orc.bulletin()
    [listed] = orc.receipts.bulletins().bulletins
    receipt_id = orc.recall("When do we close?").receipt_id
    return people | places | {"receipt_id": receipt_id, "bulletin_id": listed.bulletin_id}


@pytest.fixture
def known(orc: Orchestrator, lasting: dict[str, Any]) -> dict[str, Any]:
    """Names of what there is, by the names of parameters and fields: what is made up is not there.

    Memories are each operation's own, so that it meets none that another one ended.
    """
    ids = [orc.remember(f"Bus number {next(NUMBERS)} goes to Oslo.") for _ in range(3)]
    edge_id = orc.relate(ids[0], "Contradicts", ids[1])
    ends = {"from_id": ids[0], "to_id": ids[2], "winner": ids[0], "ids": ids, "memory_ids": ids}
    return lasting | ends | {"memory_id": ids[0], "edge_id": edge_id}


OPERATIONS = [(path, method) for path, found in openapi()["paths"].items() for method in found]
each_operation = pytest.mark.parametrize(("path", "method"), OPERATIONS)


@each_operation
def test_the_example_of_an_operation_does_what_it_is_for(
    path: str,
    method: str,
    served: Served,
    session: requests.Session,
    orc: Orchestrator,
    known: dict[str, Any],
) -> None:
    operation = document[path][method]
    given: dict[str, Any] = {}
    for kind, content in operation.definition.raw.get("requestBody", {}).get("content", {}).items():
        [example] = content["examples"].values()
        given = {"body": deepcopy(example["value"]), "media_type": kind}
        if isinstance(given["body"], dict):
            fill(given["body"], known)
    names = {"name": "example.md", "job": "consolidation", "tier": "global"} | known
    taken = re.findall(r"{(\w+)}", path)
    name = operation.definition.raw["operationId"]
    query = {one: names.get(one, value) for one, value in ASKED.get(name, {}).items()}
    prepare = PREPARED.get(name)
    if prepare is not None:
        prepare(orc, known)
    names |= known
    case = operation.Case(
        path_parameters={name: names[name] for name in taken}, query=query, **given
    )
    answer = case.call_and_validate(base_url=served.url, session=session, checks=HELD)
    taken_as = (
        answer.status_code == TAKES_MORE[name] if name in TAKES_MORE else answer.status_code < 300
    )
    assert taken_as, answer.text


@each_operation
def test_every_operation_answers_as_the_document_says(
    path: str, method: str, served: Served, session: requests.Session, known: dict[str, Any]
) -> None:
    operation = document[path][method]

    @settings(
        max_examples=2,
        derandomize=True,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(one_of(*(operation.as_strategy(generation_mode=mode) for mode in GenerationMode)))
    def holds(case: schemathesis.Case) -> None:
        for name in [each for each in case.headers if each.lower() not in HEADERS]:
            del case.headers[name]
        fill(case.path_parameters, known)
        if isinstance(case.body, dict):
            fill(case.body, known)
        assume(target_bytes(case, served) <= LONGEST_TARGET)
        answer = case.call_and_validate(base_url=served.url, session=session, checks=HELD)
        assert answer.status_code < 500

    holds()


def target_bytes(case: schemathesis.Case, served: Served) -> int:
    """Length of the path and query as they are sent."""
    sent = case.as_transport_kwargs(base_url=served.url)
    request = requests.Request(case.method, sent["url"], params=sent.get("params"))
    return len(request.prepare().path_url)


def fill(given: dict[str, Any], known: dict[str, Any]) -> None:
    """Name what there is, where something of its kind is named; what is no name stays so."""
    for name in given.keys() & known.keys():
        if type(given[name]) is type(known[name]):
            given[name] = known[name]
