"""The OpenAPI document holds: whatever fits it, or nearly so, is answered as it says, and never
with an error of the server's own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from serving_worlds import Served, serving

from memgraph.context.counting import Counters
from memgraph.surfaces.http.app import openapi

HELD = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
UNBOUNDED = {
    "memory": {"server": {"requests_per_second": 1_000_000, "refusals_per_minute": 100_000}}
}
"""So that it is the routes that answer, not the limits in front of them."""
ENDLESS = "watch"
"""A stream, which no test reads to its end; ``test_http_events`` reads its beginning."""


class Estimating(Counters):
    """Looks for no tokenizer: those of made-up models would load litellm for nothing."""

    def _load(self, model: str) -> None:
        self._found[model] = None


document = schemathesis.openapi.from_dict(openapi())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("openapi") / "root"
    with serving(root, config=UNBOUNDED) as made:
        made.service.counters = Estimating()
        yield made


@pytest.fixture(scope="module")
def session(served: Served) -> Iterator[requests.Session]:
    with requests.Session() as made:
        made.trust_env = False
        made.headers["authorization"] = f"Bearer {served.key()}"
        yield made


@pytest.fixture(scope="module")
def known(served: Served) -> dict[str, str]:
    """Names of what there is, for the addresses of requests: what is made up is not there."""
    orc = served.orchestrator()
    first = orc.remember("Anna Berg lives in Oslo.")
    second = orc.remember("Anna Berg lives in Bergen.")
    return {
        "orchestrator": orc.name,
        "memory_id": first,
        "edge_id": orc.relate(first, "Contradicts", second),
        "receipt_id": orc.recall("Oslo").receipt_id,
    }


@document.exclude(operation_id=ENDLESS).parametrize()
@settings(
    max_examples=6,
    derandomize=True,
    deadline=None,
    database=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
def test_every_operation_answers_as_the_document_says(
    case: schemathesis.Case, served: Served, session: requests.Session, known: dict[str, str]
) -> None:
    for name in case.path_parameters:
        case.path_parameters[name] = known.get(name, case.path_parameters[name])
    case.call_and_validate(base_url=served.url, session=session, checks=HELD)
