"""The defaults of a memory."""

from __future__ import annotations

from collections.abc import Mapping

from memgraph.model.enums import MemoryType

# Of 100. A text's own memories stay far below: a person may raise them.
DEFAULT_IMPORTANCE: Mapping[MemoryType, int] = {
    MemoryType.DECISION: 70,
    MemoryType.GOAL: 60,
    MemoryType.TODO: 60,
    MemoryType.PREFERENCE: 55,
    MemoryType.FACT: 50,
    MemoryType.EVENT: 45,
    MemoryType.OBSERVATION: 40,
    MemoryType.IDENTITY: 50,
}
