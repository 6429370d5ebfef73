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
