"""The influence of a memory, and the evidence of a memory or a run, for auditors."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Literal

from memgraph.model.graph import Link
from memgraph.model.values import Memory, Millis, StoredSource, Value

SourceState = Literal["kept", "changed", "gone", "erased", "unverified", "none"]


class ReceiptMention(Value):
    """A receipt that names one of the memories in question.

    Attributes:
        purpose: ``recall``, or what the receipt says that it was for.
        memory_ids: those of the memories in question that it handed out, the best first.
        bulletin_id: of a bulletin; ``same_as``: the receipt that it repeats, byte for byte.
        as_of: what was asked for as it was then; None: as it was at ``at``.
    """

    receipt_id: str
    at: Millis
    purpose: str
    actor: str | None
    memory_ids: tuple[str, ...]
    conversation_id: str | None
    workflow_run_id: str | None
    step_id: str | None
    bulletin_id: str | None
    same_as: str | None
    as_of: Millis | None = None


class ReachedRun(Value):
    """A run or a conversation that received one of the memories.

    Attributes:
        name: the id of the run or the conversation.
        receipts: how many of the listed hand-outs were for it.
        left: ids of memories that come from it and were stored after it was first given one, the
            oldest first: what it may have said because of it. At most ten, of the twenty that
            were given it last.
    """

    name: str
    receipts: int
    first_at: Millis
    last_at: Millis
    left: tuple[str, ...]


class Impact(Value):
    """Everything that a memory reached, as far as the reader may see it.

    Attributes:
        derived: what was derived from it, is caused by it or is part of it, and what stands on
            that in turn; the nearest first.
        hand_outs: receipts of the memory and of what was derived from it, the newest first.
        purposes: how many of ``hand_outs`` there are of each purpose, sorted by name.
        runs, conversations: those that hand-outs were for, the one that was given it last first.
        memories: of every id above, each once.
        cut_reasons: of ``depth``, ``max_nodes``, ``max_receipts``, ``max_left``, sorted.
    """

    memory_id: str
    derived: tuple[Link, ...]
    hand_outs: tuple[ReceiptMention, ...]
    purposes: dict[str, int]
    runs: tuple[ReachedRun, ...]
    conversations: tuple[ReachedRun, ...]
    memories: tuple[Memory, ...]
    cut: bool
    cut_reasons: tuple[str, ...]

    @cached_property
    def memory_by_id(self) -> Mapping[str, Memory]:
        return {memory.memory_id: memory for memory in self.memories}

    @cached_property
    def own_hand_outs(self) -> tuple[ReceiptMention, ...]:
        """Return the hand-outs of the memory itself, as a case counts them."""
        return tuple(receipt for receipt in self.hand_outs if self.memory_id in receipt.memory_ids)

    @cached_property
    def further_hand_outs(self) -> tuple[ReceiptMention, ...]:
        """Return the hand-outs of memories derived from it, without it."""
        return tuple(
            receipt for receipt in self.hand_outs if self.memory_id not in receipt.memory_ids
        )


class FurtherSource(Value):
    """A further source of a memory."""

    memory_id: str
    source_id: str
    added_at: Millis


class SourceLine(Value):
    """A line of a file as it was when it became a memory.

    Attributes:
        number: counts from 1; None of a value in JSON, which is written over lines of its own.
    """

    number: int | None
    text: str


class SourceTurn(Value):
    """A turn of a conversation that a memory rests on."""

    memory_id: str
    session_id: str | None
    sequence: int | None
    speaker: str | None
    at: Millis
    text: str


class SourceLines(Value):
    """The source lines of a memory: lines of the file that is kept, or turns.

    Attributes:
        state: ``kept``: the file is the one that was read, by its digest. ``changed``: it is not,
            and no line is shown. ``gone``: it is not there. ``erased``: it was erased on request.
            ``unverified``: nothing proves that the memory was read from this file. ``none``: the
            memory does not come from a file.
        path, first_line, last_line: where; the lines are None of a place that is no range.
        lines: the memory's own ones alone; of a place in JSON, that value's text.
        turns: turns that it was derived from and that the reader may see, in their order.
        cut_reasons: of ``max_lines``, ``max_turns``, sorted.
    """

    memory_id: str
    source: StoredSource
    state: SourceState
    path: str | None
    first_line: int | None
    last_line: int | None
    lines: tuple[SourceLine, ...]
    turns: tuple[SourceTurn, ...]
    cut: bool
    cut_reasons: tuple[str, ...]


class EvidenceReport(Value):
    """The evidence of a memory or a run, as far as the reader may see it.

    Attributes:
        memory_id, workflow_run_id: what was asked about; one of them.
        hand_outs: what the run was given, or what the run or the conversation that a memory comes
            from had been given before the memory was stored; the newest first.
        given: ids of the memories in ``hand_outs``, the last given first.
        links: what the memory, or what was given, was derived from, is caused by or is part of,
            and the grounds of that in turn; the nearest first.
        supports: further sources of all these.
        refuted: ids among them that were replaced or retracted.
        lines: what they were read from, of as many as were asked for: the nearest first.
        memories, sources: of every id above, each once.
        cut_reasons: of ``depth``, ``max_nodes``, ``max_receipts``, ``max_lines``, sorted.
    """

    memory_id: str | None
    workflow_run_id: str | None
    hand_outs: tuple[ReceiptMention, ...]
    given: tuple[str, ...]
    links: tuple[Link, ...]
    supports: tuple[FurtherSource, ...]
    refuted: tuple[str, ...]
    lines: tuple[SourceLines, ...]
    memories: tuple[Memory, ...]
    sources: tuple[StoredSource, ...]
    cut: bool
    cut_reasons: tuple[str, ...]

    @cached_property
    def memory_by_id(self) -> Mapping[str, Memory]:
        return {memory.memory_id: memory for memory in self.memories}

    @cached_property
    def source_by_id(self) -> Mapping[str, StoredSource]:
        return {source.source_id: source for source in self.sources}


class SentenceSupport(Value):
    """A sentence of an answer, and what was handed out that says the same.

    Attributes:
        share: 0..1, of the sentence's words, weighed by how rare they are, that are in the best of
            the memories.
        memory_ids: memories that hold at least half of it, the best first; none: nothing that was
            handed out says this.
    """

    text: str
    share: float
    memory_ids: tuple[str, ...]


class ReceiptSupport(Value):
    """A receipt whose memories may be behind an answer.

    Attributes:
        share: 0..1, of the whole answer, as of ``SentenceSupport``.
        sentences: places of the sentences that its memories hold at least half of, from 0.
        memory_ids: its memories that hold them.
        query: the question, where the operator keeps it; else empty.
    """

    receipt_id: str
    at: Millis
    purpose: str | None
    actor: str | None
    conversation_id: str | None
    workflow_run_id: str | None
    query: str
    share: float
    sentences: tuple[int, ...]
    memory_ids: tuple[str, ...]


class AnswerExplanation(Value):
    """What was handed out before an answer, and which of its sentences that holds.

    Attributes:
        receipts: the best first.
        memories: every memory that is named, by id.
        receipts_read: how many receipts were compared.
        cut: there are older receipts, or more sentences.
    """

    sentences: tuple[SentenceSupport, ...]
    receipts: tuple[ReceiptSupport, ...]
    memories: dict[str, Memory]
    receipts_read: int
    cut: bool
