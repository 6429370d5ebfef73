"""What a memory reached, over HTTP."""

from __future__ import annotations

import httpx
from serving_worlds import Served

from memgraph.clock import iso
from memgraph.model.influence import Impact

BASE = "/v1/orchestrators/orc-1"


def test_the_impact_of_what_was_asked_for_as_it_was_then(
    served: Served, client: httpx.Client
) -> None:
    orc = served.orchestrator()
    one = orc.remember("The lighthouse keeper sleeps at noon.")
    then = orc.get(one).created_at
    asked = orc.recall("When does the lighthouse keeper sleep?", as_of=iso(then))
    answer = client.get(f"{BASE}/memories/{one}/impact")
    assert answer.status_code == 200, answer.text
    found = Impact.model_validate_json(answer.content)
    assert (asked.receipt_id, then) in [(each.receipt_id, each.as_of) for each in found.hand_outs]


def test_no_problem_tells_the_class_of_a_validators_error(client: httpx.Client) -> None:
    body = {"from_id": "fact_1", "to_id": "fact_1", "edge_type": "Extends"}
    for path, asked in (("recall", {}), ("edges", body), ("recall", {"query": "a\0b"})):
        answer = client.post(f"{BASE}/{path}", json=asked)
        assert answer.status_code == 422
        assert "Value error" not in answer.text, answer.text
