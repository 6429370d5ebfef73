"""The library for asyncio: the same methods, each run in a worker thread and awaited."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from memgraph.operations.orchestrator import Orchestrator

if TYPE_CHECKING:
    from memgraph.rules.scope import Viewer

P = ParamSpec("P")
T = TypeVar("T")

# A call waits most of its time, and the loop's own pool has six threads on two cores.
THREADS = 64


class ThreadPoolCaller:
    """An object whose methods run in the threads of a pool.

    Args:
        target: the object with the methods that block.
    """

    def __init__(self, target: Any, pool: ThreadPoolExecutor) -> None:
        self._target = target
        self._pool = pool


class AwaitableMethod(Generic[P, T]):
    """A method that blocks, as a coroutine."""

    def __init__(self, method: Callable[Concatenate[Any, P], T]) -> None:
        self.__wrapped__ = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, caller: None, owner: type) -> Self: ...
    @overload
    def __get__(
        self, caller: ThreadPoolCaller, owner: type
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, caller: ThreadPoolCaller | None, owner: type) -> Any:
        if caller is None:
            return self
        method: Callable[P, T] = getattr(caller._target, self.__wrapped__.__name__)

        @wraps(method)
        async def awaited(*args: P.args, **kwargs: P.kwargs) -> T:
            call = partial(contextvars.copy_context().run, method, *args, **kwargs)
            return await asyncio.get_running_loop().run_in_executor(caller._pool, call)

        return awaited


def awaited(method: Callable[Concatenate[Any, P], T]) -> AwaitableMethod[P, T]:
    """Return a method as a coroutine, with its parameters, result, errors and docstring."""
    return AwaitableMethod(method)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="memgraph-aio")


class AsyncOrchestrator(ThreadPoolCaller):
    """The memory of one orchestrator, asynchronous: ``service.orchestrator(name).aio``.

    Every method is that of ``Orchestrator``, awaited: the same parameters, results and errors. Each
    call runs in a thread, up to 64 at a time in the process. A call that is cancelled before it has
    a thread does nothing; one that has begun ends in its thread, and what it writes is written.

    The stores of tiers (``task``, ``project``, ``everywhere``), ``export_lines`` and what a
    pipeline calls for each file stay with ``Orchestrator``.
    """

    def __init__(self, orchestrator: Orchestrator) -> None:
        super().__init__(orchestrator, _pool())
        self.orchestrator = orchestrator

    @property
    def name(self) -> str:
        """The orchestrator's name."""
        return self.orchestrator.name

    @property
    def viewer(self) -> Viewer:
        """The grants of the holder of this handle."""
        return self.orchestrator.viewer

    @property
    def actor(self) -> str:
        """The name in the journal for changes made through it."""
        return self.orchestrator.actor

    remember = awaited(Orchestrator.remember)
    store = awaited(Orchestrator.store)
    remember_many = awaited(Orchestrator.remember_many)
    correct = awaited(Orchestrator.correct)
    confirm = awaited(Orchestrator.confirm)
    retract = awaited(Orchestrator.retract)
    restore = awaited(Orchestrator.restore)
    forget = awaited(Orchestrator.forget)
    relate = awaited(Orchestrator.relate)
    promote = awaited(Orchestrator.promote)

    get = awaited(Orchestrator.get)
    list_memories = awaited(Orchestrator.list_memories)
    recall = awaited(Orchestrator.recall)
    subgraph = awaited(Orchestrator.subgraph)
    trace = awaited(Orchestrator.trace)
    contradictions = awaited(Orchestrator.contradictions)
    bulletin = awaited(Orchestrator.bulletin)
    visible_counts = awaited(Orchestrator.visible_counts)
    stats = awaited(Orchestrator.stats)
    expiring = awaited(Orchestrator.expiring)
    latest_reflection = awaited(Orchestrator.latest_reflection)
    relevant = awaited(Orchestrator.relevant)

    save_episode = awaited(Orchestrator.save_episode)
    save_episodes = awaited(Orchestrator.save_episodes)
    publish = awaited(Orchestrator.publish)
    sessions = awaited(Orchestrator.sessions)
    end_session = awaited(Orchestrator.end_session)
    subscribe = awaited(Orchestrator.subscribe)
    unsubscribe = awaited(Orchestrator.unsubscribe)
    deliver_events = awaited(Orchestrator.deliver_events)
    event_failures = awaited(Orchestrator.event_failures)
    retry_events = awaited(Orchestrator.retry_events)

    build_context = awaited(Orchestrator.build_context)
    get_context = awaited(Orchestrator.get_context)
    tier = awaited(Orchestrator.tier)

    case = awaited(Orchestrator.case)
    resolve = awaited(Orchestrator.resolve)
    dismiss = awaited(Orchestrator.dismiss)
    reopen = awaited(Orchestrator.reopen)
    stale = awaited(Orchestrator.stale)
    diff = awaited(Orchestrator.diff)
    history = awaited(Orchestrator.history)

    impact = awaited(Orchestrator.impact)
    grounds = awaited(Orchestrator.grounds)
    source_lines = awaited(Orchestrator.source_lines)
    receipt = awaited(Orchestrator.receipt)
    receipts = awaited(Orchestrator.receipts)
    replay = awaited(Orchestrator.replay)
    bulletins = awaited(Orchestrator.bulletins)
    bulletin_issued = awaited(Orchestrator.bulletin_issued)
    audit = awaited(Orchestrator.audit)

    entities = awaited(Orchestrator.entities)
    entity_proposals = awaited(Orchestrator.entity_proposals)
    get_entity_info = awaited(Orchestrator.get_entity_info)
    merge_entities = awaited(Orchestrator.merge_entities)
    split_entity = awaited(Orchestrator.split_entity)
    protect_entity = awaited(Orchestrator.protect_entity)
    decide_entity_proposal = awaited(Orchestrator.decide_entity_proposal)

    sources = awaited(Orchestrator.sources)
    source = awaited(Orchestrator.source)
    trusted = awaited(Orchestrator.trusted)
    trust = awaited(Orchestrator.trust)
    distrust = awaited(Orchestrator.distrust)
    retract_source = awaited(Orchestrator.retract_source)
    restore_source = awaited(Orchestrator.restore_source)
    erase = awaited(Orchestrator.erase)
    erase_target = awaited(Orchestrator.erase_target)

    propose_fact = awaited(Orchestrator.propose_fact)
    propose_correction = awaited(Orchestrator.propose_correction)
    propose_relation = awaited(Orchestrator.propose_relation)
    confirm_proposed = awaited(Orchestrator.confirm_proposed)

    ingest_file = awaited(Orchestrator.ingest_file)
    ingest_files = awaited(Orchestrator.ingest_files)
    manifest = awaited(Orchestrator.manifest)

    jobs = awaited(Orchestrator.jobs)
    job_plans = awaited(Orchestrator.job_plans)
    run = awaited(Orchestrator.run)
    maintain = awaited(Orchestrator.maintain)
    consolidate = awaited(Orchestrator.consolidate)
    settle = awaited(Orchestrator.settle)
    embed_pending = awaited(Orchestrator.embed_pending)
    compare_pending = awaited(Orchestrator.compare_pending)
    pending_comparisons = awaited(Orchestrator.pending_comparisons)
    pending_embeddings = awaited(Orchestrator.pending_embeddings)
    embedding_states = awaited(Orchestrator.embedding_states)
    embeddings_status = awaited(Orchestrator.embeddings_status)
    retry_embeddings = awaited(Orchestrator.retry_embeddings)
    rebuild_embeddings = awaited(Orchestrator.rebuild_embeddings)
    rebuild = awaited(Orchestrator.rebuild)
    verify = awaited(Orchestrator.verify)
    journal_state = awaited(Orchestrator.journal_state)
    accept_journal = awaited(Orchestrator.accept_journal)
    backup = awaited(Orchestrator.backup)
    export = awaited(Orchestrator.export)
