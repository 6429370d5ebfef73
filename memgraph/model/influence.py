"""The influence of a memory, and the evidence of a memory or a run, for auditors."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Literal

from memgraph.model.graph import Link, MemorySupport
from memgraph.model.values import Memory, Millis, StoredSource, Value

SourceState = Literal["kept", "changed", "gone", "erased", "unverified", "none"]


class ReceiptMention(Value):
    """A receipt that contains one of the requested memories.

    Attributes:
        purpose: the purpose in the receipt, e.g. ``recall``.
        memory_ids: the requested memories that it contains, the best first.
        bulletin_id: the id of the bulletin, if it is for one.
        same_as: the receipt whose delivery it repeats, byte for byte.
        as_of: the past time that the request was about; None: ``at``.
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
        receipts: the number of listed receipts for it.
        left: ids of memories that come from it and were stored after it first received one of the
            memories, oldest first; they may be a consequence. At most ten, and only for the twenty
            latest recipients.
    """

    name: str
    receipts: int
    first_at: Millis
    last_at: Millis
    left: tuple[str, ...]


class Impact(Value):
    """Everything that a memory reached, as far as the reader may see it.

    Attributes:
        derived: the memories that are derived from it, caused by it or part of it, directly or
            not, the nearest first.
        hand_outs: the receipts that contain it or a memory in ``derived``, newest first.
        purposes: the number of ``hand_outs`` by purpose, sorted by name.
        runs, conversations: the recipients of ``hand_outs``, latest first.
        memories: the memories of all ids above, each once.
        cut_reasons: any of ``depth``, ``max_nodes``, ``max_receipts`` and ``max_left``, sorted.
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
        """The receipts that contain the memory itself; a case counts the same."""
        return tuple(receipt for receipt in self.hand_outs if self.memory_id in receipt.memory_ids)

    @cached_property
    def further_hand_outs(self) -> tuple[ReceiptMention, ...]:
        """The receipts that contain only memories derived from it."""
        return tuple(
            receipt for receipt in self.hand_outs if self.memory_id not in receipt.memory_ids
        )


class SourceLine(Value):
    """A line of a file as it was when it became a memory.

    Attributes:
        number: from 1; None for a value in JSON, which has no line of its own.
    """

    number: int | None
    text: str


class SourceTurn(Value):
    """A turn of a conversation that a memory was derived from."""

    memory_id: str
    session_id: str | None
    sequence: int | None
    speaker: str | None
    at: Millis
    text: str


class SourceLines(Value):
    """The source lines of a memory: lines of the stored file, or turns.

    Attributes:
        state: ``kept``: the file has the digest of the file that was read. ``changed``: it has
            another digest, and no line is shown. ``gone``: it does not exist. ``erased``: it was
            erased on request. ``unverified``: there is no proof that the memory was read from this
            file. ``none``: the memory does not come from a file.
        path: the path of the file.
        first_line, last_line: the range of lines; None if the location is not a range.
        lines: only the lines of the memory itself; for a location in JSON, the text of its value.
        turns: the turns that it was derived from and that the reader may see, in order.
        cut_reasons: any of ``max_lines`` and ``max_turns``, sorted.
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
        memory_id, workflow_run_id: the memory or the run; the other is None.
        hand_outs: the receipts of the run; for a memory, the receipts of its run and conversation
            from before it was stored. Newest first.
        given: ids of the memories in ``hand_outs``, the latest first.
        links: the memories that the memory, or those in ``given``, are derived from, caused by or
            part of, directly or not; the nearest first.
        supports: further sources of all these memories.
        refuted: ids of the memories among them that were replaced or retracted.
        lines: the source lines of the requested number of memories, the nearest first.
        memories, sources: the memories of all ids above and their own sources, each once.
        cut_reasons: any of ``depth``, ``max_nodes``, ``max_receipts`` and ``max_lines``, sorted.
    """

    memory_id: str | None
    workflow_run_id: str | None
    hand_outs: tuple[ReceiptMention, ...]
    given: tuple[str, ...]
    links: tuple[Link, ...]
    supports: tuple[MemorySupport, ...]
    refuted: tuple[str, ...]
    lines: tuple[SourceLines, ...]
    memories: tuple[Memory, ...]
    sources: tuple[StoredSource, ...]
    cut: bool
    cut_reasons: tuple[str, ...]

    @cached_property
    def memory_by_id(self) -> Mapping[str, Memory]:
        return {memory.memory_id: memory for memory in self.memories}
