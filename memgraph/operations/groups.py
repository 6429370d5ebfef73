"""The groups of operations that the library, its asynchronous form and the clients share."""

from __future__ import annotations

from memgraph.model.operation import F, with_groups
from memgraph.operations.agent_memory import AgentMemory
from memgraph.operations.contexts import Contexts
from memgraph.operations.contradictions import Contradictions
from memgraph.operations.entities import Entities
from memgraph.operations.erasure.operations import Erasure
from memgraph.operations.everyday import Everyday
from memgraph.operations.graph import Graph
from memgraph.operations.history import HistoryOperations
from memgraph.operations.ingestion.operations import Ingestion
from memgraph.operations.jobs import Jobs
from memgraph.operations.maintenance.operations import Maintenance
from memgraph.operations.memories import Memories
from memgraph.operations.receipts import Receipts
from memgraph.operations.sessions import Sessions
from memgraph.operations.sources import Sources
from memgraph.operations.turns import Turns


@with_groups
class Operations(Everyday[F]):
    """The operations of an orchestrator: the everyday ones, and the others in groups."""

    memories: Memories[F]
    contradictions: Contradictions[F]
    graph: Graph[F]
    history: HistoryOperations[F]
    sources: Sources[F]
    receipts: Receipts[F]
    sessions: Sessions[F]
    contexts: Contexts[F]
    agent_memory: AgentMemory[F]
    turns: Turns[F]
    entities: Entities[F]
    ingestion: Ingestion[F]
    jobs: Jobs[F]
    erasure: Erasure[F]
    maintenance: Maintenance[F]
