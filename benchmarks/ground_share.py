"""How much of a true statement stands in its evidence, by the first letters of its words.

``python benchmarks/ground_share.py locomo-dev.json``: for several thresholds of
``memgraph.rules.proposals.grounded`` the share of statements that pass against the turns
they rest on, and against as many turns of the same conversation drawn at random. LoCoMo's questions
with their answers stand in for statements: they say in other words what the evidence says.
"""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path
from typing import Any

from memgraph.rules.proposals import QuotedTurn, grounded

THRESHOLDS = (0.2, 0.25, 1 / 3, 0.4, 0.5)
_ASKING = re.compile(r"\b(when|what|which|where|who|how|long|many|does|would|likely|kind)\b", re.I)


def turns_of(conversation: dict[str, Any]) -> dict[str, QuotedTurn]:
    """The turns of a conversation by their ids."""
    sessions = (turns for name, turns in conversation.items() if re.fullmatch(r"session_\d+", name))
    return {
        turn["dia_id"]: QuotedTurn(
            f"{turn['text']} {turn.get('blip_caption', '')}", turn["speaker"]
        )
        for turns in sessions
        for turn in turns
    }


def main(path: Path) -> None:
    rng = random.Random(1)
    founded: list[float] = []
    foreign: list[float] = []
    for each in json.loads(path.read_text(encoding="utf-8")):
        turns = turns_of(each["conversation"])
        for asked in each["qa"]:
            evidence = [turns[one] for one in asked.get("evidence", ()) if one in turns]
            if not evidence or "answer" not in asked:
                continue
            statement = f"{_ASKING.sub(' ', asked['question'])} {asked['answer']}"
            founded.append(grounded(statement, evidence))
            foreign.append(grounded(statement, rng.sample(list(turns.values()), len(evidence))))
    print(f"{len(founded)} statements\nthreshold  own evidence  random turns")
    for least in THRESHOLDS:
        own, other = (
            sum(share >= least for share in shares) / len(shares) for shares in (founded, foreign)
        )
        print(f"{least:9.2f}  {own:12.3f}  {other:12.3f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
