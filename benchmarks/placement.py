"""Place orchestrators on servers: how even it is, what a hot one does, what moving one costs.

The sizes of orchestrators are made up (a Zipf-like law); the bytes of a memory and of an empty
orchestrator are measured, see docs/guides/postgresql.md. No server is used.
"""

from __future__ import annotations

import argparse
import hashlib
import heapq
import json
import random
from typing import Any

BYTES_PER_MEMORY = 3_130
BYTES_EMPTY = 1_350_000
MOVED_BYTES_PER_S = 4_500_000


def sizes(orchestrators: int, memories: int, exponent: float, seed: int = 1) -> list[int]:
    """Return how many memories each orchestrator has, in a random order."""
    weights = [(rank + 1) ** -exponent for rank in range(orchestrators)]
    share = memories / sum(weights)
    counts = [round(weight * share) for weight in weights]
    random.Random(seed).shuffle(counts)
    return counts


def by_hash(counts: list[int], nodes: int) -> list[int]:
    """Place each by the hash of its name; return the node of each."""
    return [
        int.from_bytes(hashlib.blake2b(f"orc-{at}".encode(), digest_size=8).digest(), "big") % nodes
        for at in range(len(counts))
    ]


def by_room(counts: list[int], nodes: int) -> list[int]:
    """Place the largest first, each on the emptiest node, as an operator with a list would."""
    heap = [(0, node) for node in range(nodes)]
    placed = [0] * len(counts)
    for at in sorted(range(len(counts)), key=lambda at: -counts[at]):
        used, node = heapq.heappop(heap)
        placed[at] = node
        heapq.heappush(heap, (used + _bytes(counts[at]), node))
    return placed


def run(orchestrators: int, memories: int, nodes: int, exponent: float) -> dict[str, Any]:
    """Return bytes per node by either placement, and what moving one orchestrator takes."""
    counts = sizes(orchestrators, memories, exponent)
    total = sum(map(_bytes, counts))
    ordered = sorted(counts)
    hundredth = sum(ordered[-max(orchestrators // 100, 1) :]) / max(sum(counts), 1)
    chosen = {"median": ordered[len(ordered) // 2], "largest": ordered[-1]}
    return {
        "terabytes": round(total / 1e12, 1),
        "terabytes_per_node": round(total / nodes / 1e12, 2),
        "share_of_the_largest_hundredth": round(hundredth, 2),
        "fullest_node_to_mean": {
            rule.__name__: round(_fullest(counts, rule(counts, nodes), nodes) * nodes / total, 2)
            for rule in (by_hash, by_room)
        },
        "moving": {
            name: {
                "memories": count,
                "gigabytes": round(_bytes(count) / 1e9, 3),
                "seconds": round(_bytes(count) / MOVED_BYTES_PER_S, 1),
            }
            for name, count in chosen.items()
        },
    }


def _bytes(memories: int) -> int:
    return BYTES_EMPTY + memories * BYTES_PER_MEMORY


def _fullest(counts: list[int], placed: list[int], nodes: int) -> int:
    used = [0] * nodes
    for count, node in zip(counts, placed, strict=True):
        used[node] += _bytes(count)
    return max(used)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orchestrators", type=int, default=100_000)
    parser.add_argument("--memories", type=int, default=10_000_000_000)
    parser.add_argument("--nodes", type=int, default=40)
    parser.add_argument("--exponent", type=float, default=0.8)
    print(json.dumps(run(**vars(parser.parse_args())), indent=1))
