"""The order in which memories are shown: by rank, and what belongs together side by side."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

Beside = Mapping[str, Sequence[str]]

# So many go before what they amend, stand behind what they contradict, or behind what replaced
# them; the others keep the place of their rank, so that one memory with many fills no answer.
MOST_BEFORE, MOST_OTHER_SIDES, MOST_REPLACED = 2, 3, 2


def placed(
    ranked: Sequence[str], before: Beside, behind: Beside, there: Collection[str], top_n: int
) -> dict[str, str]:
    """The ids to show, in order, each with the one beside which it stands: itself, most often.

    Args:
        ranked: ids, best first.
        before: what goes right before an id: what amended it, and the later side of an open
            contradiction.
        behind: what goes right behind it: the earlier side of an open contradiction, and what it
            replaced.
        there: the ids that can be shown.
        top_n: how many, at most.
    """
    chosen: dict[str, str] = {}
    for one in ranked:
        for other in (*before.get(one, ()), one, *behind.get(one, ())):
            if len(chosen) >= top_n:
                return chosen
            if other in there:
                chosen.setdefault(other, one)
    return chosen
