"""Reading through a handle; what its viewer may not see does not exist."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Unpack

from pydantic import Field

from memgraph.clock import parse_time
from memgraph.errors import (
    AccessDenied,
    InvalidInput,
    MemoryDisabled,
    StorageError,
)
from memgraph.model.access import Permission
from memgraph.model.context import BuiltBulletin
from memgraph.model.enums import EdgeType, MemoryKind, MemoryStatus, MemoryType, ShownStatus
from memgraph.model.graph import ContradictionPage, Subgraph, Trace
from memgraph.model.jobs import ExpiringReport, RelevantMemories
from memgraph.model.operation import (
    After,
    AsOf,
    Limit,
    MemoryId,
    Time,
    WireFormat,
    WireResult,
    operation,
)
from memgraph.model.recall import MAX_TOP_N, Bundle, Query, RecallFields, RecallRequest
from memgraph.model.receipts import Receipt
from memgraph.model.remote import MAX_BATCH, LatestReflection, MemoryCounts, MemoryPage
from memgraph.model.values import Memory, Name, validated
from memgraph.operations.handle import Handle

if TYPE_CHECKING:
    from memgraph.service.open_orchestrator import OpenOrchestrator

RECEIPT_PREFIX = "rcl_"
LIMITS = ("max_chars", "max_line_chars")
"""The settings that limit the size of a bulletin."""


def _listed(edge_types: Collection[EdgeType | str]) -> list[EdgeType | str]:
    return [edge_types] if isinstance(edge_types, str) else sorted(edge_types)


class ReadingHandle(Handle):
    """The part of ``Orchestrator`` that reads."""

    @operation(
        Permission.READ,
        "GET",
        "/memories/{memory_id}",
        tag="memories",
        id="get_memory",
        tagged=True,
    )
    def get(self, memory_id: MemoryId, *, as_of: AsOf = None) -> Memory:
        """Return one memory; with ``as_of`` its status and values at that time.

        Every method that takes a memory id also accepts the short id of a bulletin, its last eight
        characters; ``erase`` and ``derived_from`` take only full ids.

        Raises:
            NotFound: there is none that this handle may see, or there was none then.
        """
        from memgraph.operations.read import lookup as reading

        memory_id = self._whole_id(memory_id)
        with self._service.opened(self.name) as opened:
            return reading.get(opened, self.viewer, memory_id, as_of=_moment(as_of))

    @operation(
        Permission.READ,
        "GET",
        "/memories",
        tag="memories",
        answer=WireResult(MemoryPage, cursor=lambda memory: memory.memory_id),
    )
    def list_memories(
        self,
        *,
        types: Annotated[
            Sequence[MemoryType],
            WireFormat(list[MemoryType], "type"),
            Field(description="Of these types."),
        ] = (),
        kinds: Annotated[
            Sequence[MemoryKind],
            WireFormat(list[MemoryKind], "kind"),
            Field(description="Of these kinds."),
        ] = (),
        statuses: Annotated[
            Sequence[MemoryStatus | ShownStatus],
            # In full: a request without statuses returns active ones.
            WireFormat(list[ShownStatus], "status", lambda given: given or tuple(ShownStatus)),
            Field(description="Of these statuses."),
        ] = (MemoryStatus.ACTIVE,),
        tags: Annotated[
            Sequence[str], WireFormat(list[Name], "tag"), Field(description="With all these tags.")
        ] = (),
        session_id: Annotated[Name | None, Field(description="Said in this session.")] = None,
        before: Annotated[
            str | None,
            WireFormat(Name, "cursor"),
            Field(description="`next_cursor` of the page before."),
        ] = None,
        limit: Annotated[int, Field(ge=1, le=MAX_BATCH, description="Of a page.")] = 50,
        as_of: AsOf = None,
    ) -> Sequence[Memory]:
        """Return memories, newest first, by page; writes meanwhile shift no page.

        An empty filter leaves nothing out; erased memories have only the status ``erased``.

        Args:
            tags: all of them must match.
            before: the last id of the page before.
            limit: 1..1,000.
            as_of: what was stored by then, with the statuses and values at that time.
        """
        from memgraph.operations.read import lookup as reading

        with self._service.opened(self.name) as opened:
            return reading.listing(
                opened,
                self.viewer,
                types=types,
                kinds=kinds,
                statuses=statuses,
                tags=tags,
                session_id=session_id,
                before=before,
                limit=limit,
                as_of=_moment(as_of),
            )

    def stats(self) -> dict[str, Any]:
        """Return counts over everything stored, sizes on disk, and the state of the embeddings."""
        from memgraph.operations.read import lookup as reading

        with self._service.opened(self.name) as opened:
            return reading.stats(opened)

    @operation(
        Permission.READ,
        "GET",
        "/stats",
        tag="operating",
        id="get_stats",
        answer=WireResult(
            MemoryCounts,
            MemoryCounts.model_validate,
            lambda counts: counts.model_dump(mode="json", exclude_unset=True),
        ),
    )
    def visible_counts(self) -> dict[str, dict[str, int]]:
        """Return how many memories this handle sees, of each kind, type and status."""
        from memgraph.store import memories

        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return memories.counts(snapshot, self._view)

    @operation(Permission.READ, "POST", "/recall", tag="recall", body=RecallRequest)
    def recall(self, query: str | RecallRequest = "", **fields: Unpack[RecallFields]) -> Bundle:
        """Return the memories that answer a question, best first, with reasons and sources.

        Args:
            query: words or a sentence; or a whole request.
            fields: the other fields of ``RecallRequest``.

        Raises:
            InvalidInput: a field is wrong, or there is neither a query nor a filter.
            AccessDenied: the request reaches further than this handle's viewer; it is logged.
        """
        from memgraph.operations.read import receipts
        from memgraph.operations.read.recall import answer

        request = query if isinstance(query, RecallRequest) else None
        if request is None:
            request = validated(RecallRequest, {"query": query, **fields})
        with self._service.opened(self.name) as opened:
            try:
                bundle = answer(opened, self.viewer, request)
            except AccessDenied as error:
                raise self._denied(opened, error, field=error.details["field"]) from None
            behind = receipts.behind(self.viewer, request, bundle)
            self._keep_receipt(opened, Receipt.of(request, bundle), behind)
            return bundle

    @operation(Permission.READ, "POST", "/subgraph", tag="graph", body="Neighbourhood")
    def subgraph(
        self,
        ids: Annotated[Sequence[str], WireFormat(tuple[Name, ...]), Field(max_length=1_000)],
        *,
        hops: int = 1,
        max_nodes: int = 200,
        edge_types: Annotated[
            Collection[EdgeType | str] | None, WireFormat(tuple[EdgeType, ...], write=_listed)
        ] = None,
        as_of: Time | None = None,
        retracted: bool = False,
    ) -> Subgraph:
        """Return the memories within ``hops`` (1..4) of ``ids`` and the edges between them,
        bounded.

        ``cut`` is True when a bound (``max_nodes``, a node's degree) left something out;
        ``retracted`` includes retracted memories.

        Raises:
            InvalidInput: a bound out of range.
        """
        from memgraph.graph.subgraph import subgraph
        from memgraph.store.visibility import STANDING

        if isinstance(ids, str):
            raise InvalidInput("ids must be a list of memory ids", field="ids")
        ids = self._whole_ids(ids)
        with self._service.opened(self.name) as opened:
            return subgraph(
                opened.database,
                ids,
                hops=hops,
                max_nodes=max_nodes,
                edge_types=None if edge_types is None else _edge_types(edge_types),
                viewer=self.viewer,
                as_of=_moment(as_of),
                statuses=None if retracted else STANDING,
            )

    @operation(Permission.READ, "GET", "/memories/{memory_id}/trace", tag="memories")
    def trace(self, memory_id: MemoryId, *, as_of: AsOf = None) -> Trace:
        """Return a memory's sources, what became of it, and what depends on it.

        With ``as_of`` what was known of it then. Raises NotFound.
        """
        from memgraph.graph.trace import trace

        moment = _moment(as_of)
        memory_id = self._whole_id(memory_id)
        with self._service.opened(self.name) as opened:
            return trace(opened.database, memory_id, viewer=self.viewer, as_of=moment)

    @operation(Permission.READ, "GET", "/contradictions", tag="graph", id="list_contradictions")
    def contradictions(
        self,
        *,
        resolved: Annotated[bool, Field(description="Those that were resolved.")] = False,
        limit: Limit = 50,
        after: After = None,
        as_of: AsOf = None,
        text: Annotated[
            Name | None,
            Field(description="One side contains each of these words; 200 characters."),
        ] = None,
        memory_id: Annotated[Name | None, Field(description="One side is this memory.")] = None,
        dismissed: Annotated[
            bool | None, Field(description="Of the resolved: those that were dismissed, or not.")
        ] = None,
        oldest_first: Annotated[bool, Field(description="The other way round.")] = False,
    ) -> ContradictionPage:
        """Return open or resolved contradictions, newest first, with both sides.

        Only those of which both sides are visible.

        Args:
            limit: 1..500.
            after: ``next_after`` of the page before.
            text: only those with each of its words on one side.
            memory_id: only those with this memory on one side.
            dismissed: of the resolved ones, only those that were dismissed, or were not.
        """
        from memgraph.graph.contradictions import list_contradictions

        memory_id = None if memory_id is None else self._whole_id(memory_id)
        with self._service.opened(self.name) as opened:
            return list_contradictions(
                opened.database,
                now_ms=opened.clock.now_ms(),
                state="resolved" if resolved else "open",
                viewer=self.viewer,
                limit=limit,
                after=after,
                as_of=_moment(as_of),
                text=text,
                memory_id=memory_id,
                dismissed=dismissed,
                oldest_first=oldest_first,
            )

    @operation(
        Permission.READ,
        "GET",
        "/bulletin",
        tag="recall",
        id="get_bulletin",
        # Each has a receipt of its own: the same bulletin is to have the same ETag.
        answer=WireResult(
            BuiltBulletin, lambda issued: replace(issued, receipt_id=None), lambda issued: issued
        ),
        tagged=True,
    )
    def bulletin(self, *, as_of: AsOf = None) -> BuiltBulletin:
        """Return the bulletin for the next message; never fails for a broken database.

        ``warning`` is set when it is the last good one or an empty one.

        Args:
            as_of: the bulletin of that time, built from what was known then and with today's size
                limits. It leaves no receipt, and a database that cannot be read is an error.
        """
        from memgraph.bulletin.board import without_database

        if as_of is not None:
            return self._bulletin_of(parse_time(as_of))

        try:
            with self._service.opened(self.name) as opened:
                issued = opened.board.bulletin_or_fallback(self.viewer)
                now = opened.clock.now_ms()
                enough = opened.receipts.add_bulletin(issued.bulletin, now)
                issued = self._noted(opened, issued, now, enough=enough)
                if self._service.embeds_in_background and opened.board.waiting:
                    # A snapshot is for failures: every message may make it obsolete.
                    opened.background.wake_later()
                return issued
        except (StorageError, MemoryDisabled) as error:
            paths = self._service.paths(self.name)
            settings = self._service.settings(self.name).memory.bulletin
            return without_database(paths.bulletins, settings, self.viewer, error)

    def _bulletin_of(self, as_of: int) -> BuiltBulletin:
        from memgraph.bulletin.generate import generate_in

        with self._service.opened(self.name) as opened:
            settings = opened.settings.memory.bulletin
            with opened.database.read() as snapshot:
                return BuiltBulletin(generate_in(snapshot, self.viewer, settings, as_of))

    def _noted(
        self, opened: OpenOrchestrator, issued: BuiltBulletin, at: int, *, enough: bool
    ) -> BuiltBulletin:
        """Keep the receipt of a bulletin and return the bulletin; its items are computed when
        written.
        """
        from memgraph.operations.read.receipts import ReceiptContext
        from memgraph.store.receipts import BULLETIN

        limits = opened.settings.memory.bulletin
        asked: dict[str, Any] = {
            "purpose": BULLETIN,
            # Those of earlier releases were no use of what stood in them.
            "used": True,
            "limits": limits.model_dump(include=set(LIMITS)),
        }
        if issued.warning is not None:
            asked["warning"] = issued.warning
        receipt = Receipt(
            receipt_id=opened.ids.new(RECEIPT_PREFIX),
            at=at,
            query="",
            asked=asked,
            items=(),
            counts=False,
            change_seq=issued.bulletin.change_seq,
        )
        self._keep_receipt(opened, receipt, ReceiptContext(bulletin=issued.bulletin), enough=enough)
        return replace(issued, receipt_id=receipt.receipt_id)


def _edge_types(given: Collection[EdgeType | str]) -> list[EdgeType]:
    if isinstance(given, str):
        given = [given]
    try:
        return [EdgeType(each) for each in given]
    except ValueError as error:
        known = ", ".join(EdgeType)
        raise InvalidInput(f"an edge type is one of {known}", field="edge_types") from error


def _moment(time: Time | None) -> int | None:
    return None if time is None else parse_time(time)


class ExpiringHandle(ReadingHandle):
    """The part of ``Orchestrator`` for expiry, reflections and relevant memories."""

    @operation(Permission.READ, "GET", "/expiring", tag="recall", id="list_expiring")
    def expiring(
        self,
        *,
        days: Annotated[
            float, Field(ge=0, le=36_600, allow_inf_nan=False, description="From now.")
        ] = 30.0,
        limit: Annotated[int, Field(ge=0, le=1_000)] = 50,
    ) -> ExpiringReport:
        """Return the facts that expire within ``days`` unless they are used, soonest first.

        Only inferred facts are ever listed. To keep one, recall it, or ``confirm`` it for good.
        ``days`` is 0..36,600, ``limit`` 0..1,000; ``total`` counts all of them.

        Raises:
            InvalidInput: one of them is out of range.
        """
        from memgraph.operations.life.expiry import expiring

        with self._service.opened(self.name) as opened:
            return expiring(opened, self.viewer, days=days, limit=limit)

    @operation(
        Permission.READ,
        "GET",
        "/reflection",
        tag="recall",
        id="get_reflection",
        answer=LatestReflection,
    )
    def latest_reflection(self) -> Memory | None:
        """Return the latest weekly reflection that this handle may see; None: there is none.

        It is cached until any process writes.
        """
        with self._service.opened(self.name) as opened:
            found = opened.reflections.latest(self.viewer)
            now = opened.clock.now_ms()
            if found is not None and opened.reflections.is_news(found, now):
                # It comes to stand in prompts, and what an answer repeats of it is no news.
                self._write_receipts(opened, enough=opened.receipts.add_text(found.content, now))
            return found

    @operation(Permission.READ, "POST", "/relevant", tag="recall", body="Message")
    def relevant(
        self,
        prompt: Query,
        *,
        limit: Annotated[int, Field(ge=1, le=MAX_TOP_N)] = 5,
        exclude_session_id: Name | None = None,
    ) -> RelevantMemories:
        """Return what belongs before the answer to a message: relevant facts and the last
        reflection.

        Args:
            prompt: the message; an empty one gives the most important facts.
            limit: 1..1,000 facts.
            exclude_session_id: the conversation of the message, whose turns the agent has already.

        Raises:
            InvalidInput: an argument is out of range.
        """
        bundle = self.recall(
            prompt,
            kinds=(MemoryKind.FACT,),
            top_n=limit,
            exclude_session_id=exclude_session_id,
        )
        return RelevantMemories(bundle=bundle, reflection=self.latest_reflection())
