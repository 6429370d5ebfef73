"""``memgraph bench answers``: how much of the evidence reaches the prompt, and the answers from it.

Each talk is stored in an orchestrator of its own through the public interface, its sessions are
ended and consolidated, by a language model if one is named, and every question is asked of each of
`SOURCES`. What a source gives is printed as a reader would get it; its tokens are those of the
printed text. With a language model the questions are answered and judged: see `benchmarks.reader`.
"""

from __future__ import annotations

import json
import math
import os
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from benchmarks import answer_sets, reader, retrieval
from benchmarks.answer_sets import Question, Talk
from benchmarks.plain import FUSED, PlainSearch
from memgraph import MemoryService, Orchestrator
from memgraph.errors import InvalidInput
from memgraph.model.enums import MemoryKind, MemoryStatus
from memgraph.model.remote import MAX_BATCH
from memgraph.model.values import Memory, MemoryInput
from memgraph.operations.life.consolidation import SessionReport
from memgraph.providers import _litellm
from memgraph.rules.budget import token_cost

BLOCK, RECALL, FUSION, WHOLE = "block", "recall", "fusion", "whole"
SOURCES: Final = (BLOCK, RECALL, FUSION, WHOLE)
"""``orc.context``; recall's lines; those of plain fusion; all turns."""
TOP: Final = 20
"""Lines of recall and of plain fusion."""
ENCODING: Final = "cl100k_base"
ESTIMATE: Final = "estimate"
MEASURES: Final = (
    "evidence",
    "complete",
    "tokens",
    "tokens_max",
    "lines",
    "attributed",
    "empty",
    "ms_p50",
)

_OF_THE_ENCODING = "gpt-4"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# A line that starts with its date and with who said it, or with its type.
_ATTRIBUTED = re.compile(r"(?:\[\d+\] )?[A-Z][a-z]{2} \d{4}-\d\d-\d\d(?: \d\d:\d\d)?, \S.*?: ")

Progress = Callable[[str, int, int], None]
Count = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a prompt: the turns that it holds, and the numbers of lines that it names."""

    turns: frozenset[str]
    number: int = 0
    replaces: tuple[int, ...] = ()
    replaced_by: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Printed:
    """What a reader gets for a question, and the seconds that it took (None: not measured)."""

    text: str
    lines: tuple[Line, ...]
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """The measures of one question and source.

    Attributes:
        evidence: the share of the evidence in the text.
        attributed: lines with a date, and a speaker or type.
        change: None: nothing has changed; else see `change`.
    """

    category: str
    evidence: float
    tokens: int
    lines: int
    attributed: int
    seconds: float | None
    change: Mapping[str, bool] | None


@dataclass(frozen=True, slots=True)
class Writer:
    """The language model that consolidates.

    Attributes:
        model: ``litellm/<model>``.
        api_base: its address; None: litellm's default.
        facts: the file to which the facts are written, a line of JSON each; None: none.
    """

    model: str
    api_base: str | None = None
    timeout_s: float = 600.0
    facts: Path | None = None

    @property
    def environ(self) -> dict[str, str]:
        """The settings, as variables of the environment."""
        given = {"PROVIDER": self.model, "TIMEOUT_S": str(self.timeout_s)}
        if self.api_base is not None:
            given["API_BASE"] = self.api_base
        return {f"MEMGRAPH_MEMORY__LLM__{name}": value for name, value in given.items()}


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact that consolidation wrote, the turns that it was derived from, and those of the facts
    that it replaced."""

    content: str
    type: str
    status: MemoryStatus
    turns: frozenset[str]
    replaces: frozenset[str]


@dataclass(frozen=True, slots=True)
class Written:
    """What consolidation wrote of one talk.

    Attributes:
        usage: ``calls``, ``tokens_in`` and ``tokens_out`` of the model for everything, also for
            comparing and naming; tokens as the model counts them, else estimated.
    """

    reports: Sequence[SessionReport]
    facts: Sequence[Fact]
    usage: Mapping[str, int]
    changes: int
    in_force: int


@dataclass(slots=True)
class Found:
    """The measures of one set, by source."""

    talks: int = 0
    turns: int = 0
    by_source: dict[str, list[Measured]] = field(default_factory=dict)
    written: list[Written] = field(default_factory=list)


def run(
    files: Sequence[Path],
    *,
    sources: Sequence[str] = SOURCES,
    budget: int | None = None,
    limit: int | None = None,
    readers: reader.Readers | None = None,
    writer: Writer | None = None,
    progress: Progress = lambda *_: None,
) -> dict[str, Any]:
    """Ask every question of every source, measure what it gives, and have it answered.

    Args:
        budget: the tokens of the block; None: the default of the product.
        limit: the first so many questions of each talk alone.
        readers: the language models and the file of their answers; None: only measure.
        writer: the language model that consolidates; None: none does.
        progress: called with a talk or step, how much was done before it, and of how much.

    Returns:
        ``tokenizer`` (`ENCODING` or `ESTIMATE`), ``budget``, ``sets``: by the file's name without
        its ending ``talks``, ``turns``, ``questions``, and by source the figures of `_figures`,
        with ``writer`` also ``consolidation``, see `_consolidation`;
        with ``readers`` also ``answers``, see `reader.figures`.

    Raises:
        InvalidInput: a file has none of the forms, two have one name, a source is unknown, there is
            nothing to ask, or as `reader.check`.
        ProviderError: a model cannot be asked at all; what was answered is kept.
    """
    if unknown := set(sources).difference(SOURCES):
        raise InvalidInput(f"no source {sorted(unknown)[0]!r}: one of {', '.join(SOURCES)}")
    if len({file.stem for file in files}) < len(files):
        raise InvalidInput("two files have the same name")
    sets = {file.stem: answer_sets.read(file, limit) for file in files}
    total = sum(len(talks) for talks in sets.values())
    if readers is not None:
        reader.check(readers)
        answerable = any(
            each.answer for t in sets.values() for talk in t for each in talk.questions
        )
        if readers.reader and not answerable:
            raise InvalidInput("there is no question with a right answer to give to a reader")
    elif not sets:
        raise InvalidInput("there is no file of talks")
    tokenizer, count = _tokenizer()
    asked: list[reader.Asked] = []
    results: dict[str, Any] = {}
    done = 0
    for name, talks in sets.items():
        found = Found(by_source={source: [] for source in sources})
        for talk in talks:
            progress(f"{name}, {talk.name}: {len(talk.turns)} turns", done, total)
            with _stored(talk, f"bench-{done}", budget, writer) as store:
                if writer is not None:
                    found.written.append(store.written())
                    _keep(writer, talk, found.written[-1])
                for number, question, source in _questions(talk, sources):
                    printed = store.ask(source, question.text)
                    found.by_source[source].append(_measured(question, printed, count))
                    if readers is not None and question.answer:
                        key = reader.Key(name, talk.name, number, source)
                        asked.append(reader.Asked(key, question, printed.text))
            found.talks += 1
            found.turns += len(talk.turns)
            done += 1
        results[name] = {
            "talks": found.talks,
            "turns": found.turns,
            "questions": len(found.by_source[sources[0]]),
            **{source: _figures(each) for source, each in found.by_source.items()},
            **({} if writer is None else {"consolidation": _consolidation(found.written)}),
        }
    answers = {} if readers is None else {"answers": reader.run(readers, asked, count, progress)}
    return {"tokenizer": tokenizer, "budget": budget, "sets": results, **answers}


def _tokenizer() -> tuple[str, Count]:
    """Return the name and function of the counter: a real tokenizer where one is installed."""
    if find_spec("litellm") is None:
        return ESTIMATE, token_cost
    _litellm.load()
    count: Any = import_module("litellm").token_counter
    return ENCODING, lambda text: int(count(model=_OF_THE_ENCODING, text=text)) if text else 0


def _questions(talk: Talk, sources: Sequence[str]) -> Iterator[tuple[int, Question, str]]:
    for number, question in enumerate(talk.questions, start=1):
        for source in sources:
            yield number, question, source


@contextmanager
def _stored(talk: Talk, name: str, budget: int | None, writer: Writer | None) -> Iterator[Store]:
    """Yield a talk that is stored in an orchestrator of its own."""
    environ = {} if writer is None else {**os.environ, **writer.environ}
    with (
        tempfile.TemporaryDirectory(prefix="memgraph-bench-") as root,
        MemoryService(root, environ=environ, background=False) as service,
        PlainSearch([_said(turn) for turn in talk.turns]) as plain,
    ):
        yield Store(service.orchestrator(name, create=True), talk, plain, budget)


def _keep(writer: Writer, talk: Talk, written: Written) -> None:
    """Append the facts of a talk to the writer's file."""
    if writer.facts is None:
        return
    with writer.facts.open("a", encoding="utf-8") as file:
        for fact in written.facts:
            line = {
                "talk": talk.name,
                "fact": fact.content,
                "type": fact.type,
                "status": fact.status.value,
                "turns": sorted(fact.turns),
                "replaces": sorted(fact.replaces),
            }
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


class Store:
    """A talk that is stored and consolidated, and what each source gives for a question."""

    def __init__(
        self, orc: Orchestrator, talk: Talk, plain: PlainSearch, budget: int | None
    ) -> None:
        self._orc = orc
        self._talk = talk
        self._plain = plain
        self._budget = budget
        self._turns: dict[str, frozenset[str]] = {}
        for memory_id, turn in zip(retrieval.store(orc, talk.turns), talk.names, strict=True):
            # A text that is repeated is stored once, and stands for each turn that said it.
            self._turns[memory_id] = self._turns.get(memory_id, frozenset()) | {turn}
        self._reports: list[SessionReport] = []
        for session in talk.sessions:
            orc.sessions.end(session)
            self._reports += orc.jobs.consolidate(session)
        orc.settle()
        lines = tuple(Line(frozenset({turn})) for turn in talk.names)
        self._whole = Printed("".join(_input_line(each) for each in talk.turns), lines)

    def written(self) -> Written:
        """Return what consolidation wrote, and how many changes of the talk are in force by it."""
        facts = [self._fact(one) for one in self._facts()]
        changes = [question for question in self._talk.questions if question.old]
        usage = self._orc.maintenance.stats()["model"]
        in_force_now = sum(in_force(one, facts) for one in changes)
        return Written(self._reports, facts, usage, len(changes), in_force_now)

    def _facts(self) -> Iterator[Memory]:
        before = None
        while page := self._orc.memories.list(
            kinds=[MemoryKind.FACT], statuses=[], before=before, limit=MAX_BATCH
        ):
            yield from page
            before = page[-1].memory_id

    def _fact(self, memory: Memory) -> Fact:
        replaced = self._orc.trace(memory.memory_id).replaced
        return Fact(
            memory.content,
            memory.type.value,
            memory.status,
            self._turns_of(memory.memory_id),
            frozenset[str]().union(*(self._turns_of(one.memory_id) for one in replaced)),
        )

    def ask(self, source: str, question: str) -> Printed:
        """Return what a source gives for a question."""
        if source == WHOLE:
            return self._whole
        return {BLOCK: self._block, RECALL: self._recall, FUSION: self._fusion}[source](question)

    def _block(self, question: str) -> Printed:
        start = time.perf_counter()
        block = self._orc.context(question, budget_tokens=self._budget)
        seconds = time.perf_counter() - start
        lines = tuple(
            Line(
                self._turns_of(one.memory_id),
                number,
                (*one.replaces, *one.changes),
                (*one.replaced_by, *one.changed_by),
            )
            for number, one in sorted(block.memories.items())
        )
        return Printed(block.text, lines, seconds)

    def _recall(self, question: str) -> Printed:
        start = time.perf_counter()
        items = self._orc.recall(question, top_n=TOP).items
        seconds = time.perf_counter() - start
        memories = [item.memory for item in items]
        text = "".join(
            line_of(each.event_time, each.source_role or each.type.value, each.content)
            for each in memories
        )
        return Printed(text, tuple(Line(self._turns_of(m.memory_id)) for m in memories), seconds)

    def _fusion(self, question: str) -> Printed:
        start = time.perf_counter()
        places = self._plain.search(question)[FUSED][:TOP]
        seconds = time.perf_counter() - start
        text = "".join(_input_line(self._talk.turns[at]) for at in places)
        lines = tuple(Line(frozenset({self._talk.names[at]})) for at in places)
        return Printed(text, lines, seconds)

    def _turns_of(self, memory_id: str) -> frozenset[str]:
        """Return the turns that a memory is, or that a fact was derived from."""
        if memory_id not in self._turns:
            trace = self._orc.trace(memory_id)
            grounds = [link.memory_id for link in trace.grounds if link.edge_type is None]
            is_fact = trace.memory.kind is MemoryKind.FACT
            turns = [self._turns.get(one, frozenset()) for one in grounds if is_fact]
            self._turns[memory_id] = frozenset[str]().union(*turns)
        return self._turns[memory_id]


def line_of(at: int | None, who: str, content: str) -> str:
    """Return a plain line: weekday and date (UTC), who said it, and the text without newlines."""
    date = "" if at is None else f"{_EPOCH + timedelta(milliseconds=at):%a %Y-%m-%d}, "
    return f"{date}{who}: {' '.join(content.split())}\n"


def _input_line(turn: MemoryInput) -> str:
    return line_of(turn.event_time, turn.source_role or turn.type.value, turn.content)


def _said(turn: MemoryInput) -> str:
    """Return the text as plain search is given it, after its speaker's name."""
    return f"{turn.source_role}: {turn.content}" if turn.source_role else turn.content


def _measured(question: Question, printed: Printed, count: Count) -> Measured:
    inside = frozenset[str]().union(*(line.turns for line in printed.lines))
    return Measured(
        category=question.category,
        evidence=len(question.evidence & inside) / len(question.evidence),
        tokens=count(printed.text),
        lines=len(printed.lines),
        attributed=attributed(printed.text),
        seconds=printed.seconds,
        change=change(question, printed.lines) if question.old else None,
    )


def attributed(text: str) -> int:
    """Return the number of lines that start with a date, and with a speaker or type."""
    return sum(_ATTRIBUTED.match(line) is not None for line in text.splitlines())


def change(question: Question, lines: Sequence[Line]) -> dict[str, bool]:
    """Compare the lines of what holds now with those of what held before.

    Returns:
        ``current``, ``old``: a line of it is there; ``marked``: each outdated line and a current
        one are marked as replaced, or probably changed, and the reverse; ``later``: the last
        current line stands behind the last outdated one.
    """
    current = [at for at, line in enumerate(lines) if line.turns & question.evidence]
    # A line that holds both, as a fact may, is none of the outdated ones.
    old = [at for at, line in enumerate(lines) if line.turns & question.old and at not in current]
    both = bool(current and old)
    numbers = {lines[at].number for at in current}
    replaced = {number for at in current for number in lines[at].replaces}
    return {
        "current": bool(current),
        "old": bool(old),
        "marked": both
        and all(
            lines[at].number in replaced or numbers.intersection(lines[at].replaced_by)
            for at in old
        ),
        "later": both and current[-1] > old[-1],
    }


def in_force(question: Question, facts: Sequence[Fact]) -> bool:
    """Return True if a fact from a current turn replaced one from an outdated turn, or rests on
    both."""
    return any(
        fact.turns & question.evidence and (fact.replaces | fact.turns) & question.old
        for fact in facts
    )


def _consolidation(written: Sequence[Written]) -> dict[str, Any]:
    """Return what the language model did to all talks of a set.

    Returns:
        ``turns``; ``calls``, ``tokens_in`` and ``tokens_out`` of everything, also for twenty turns;
        ``facts``, ``active`` ones, ``rejected`` proposals, ``pending`` sessions; ``changes``, and
        those ``in_force``.
    """
    reports = [report for each in written for report in each.reports]
    facts = [fact for each in written for fact in each.facts]
    turns = sum(report.turns for report in reports)
    used = {
        name: sum(each.usage[name] for each in written)
        for name in ("calls", "tokens_in", "tokens_out")
    }
    return {
        "turns": turns,
        **used,
        **{f"{name}_per_20": 20 * count / max(1, turns) for name, count in used.items()},
        "facts": len(facts),
        "active": sum(fact.status is MemoryStatus.ACTIVE for fact in facts),
        "rejected": sum(len(report.rejected) for report in reports),
        "pending": sum(report.state == "pending" for report in reports),
        "changes": sum(each.changes for each in written),
        "in_force": sum(each.in_force for each in written),
    }


def _figures(measured: Sequence[Measured]) -> dict[str, Any]:
    """Return the figures of a source.

    Returns:
        ``evidence`` (mean share of the evidence in the text), ``complete`` (share of questions with
        all of it), ``tokens`` (mean), ``tokens_max``, ``lines`` (mean), ``attributed`` (share of
        the lines with a date and a speaker or type; None: no lines), ``empty`` (share of questions
        without any line), ``ms_p50`` of a call (None: not measured), ``by_category``
        (``questions``, ``evidence``, ``complete``, ``tokens``, ``tokens_max``), and where something
        has changed ``changes``: ``questions``, ``current`` (questions with what holds now),
        ``old_alone`` (with what held before and not what holds now), ``both``, and of these
        ``marked``, ``later`` and ``clear`` (either).
    """
    lines = sum(each.lines for each in measured)
    seconds = [each.seconds for each in measured if each.seconds is not None]
    categories = dict.fromkeys(each.category for each in measured)
    return {
        **_shares(measured),
        "lines": round(lines / len(measured), 1),
        "attributed": round(sum(m.attributed for m in measured) / lines, 4) if lines else None,
        "empty": round(sum(not each.lines for each in measured) / len(measured), 4),
        "ms_p50": round(statistics.median(seconds) * 1000, 2) if seconds else None,
        "by_category": {
            category: {"questions": len(chosen), **_shares(chosen)}
            for category in categories
            if (chosen := [each for each in measured if each.category == category])
        },
        **_changes([each.change for each in measured if each.change is not None]),
    }


def _shares(measured: Sequence[Measured]) -> dict[str, Any]:
    tokens = [each.tokens for each in measured]
    return {
        "evidence": round(math.fsum(each.evidence for each in measured) / len(measured), 4),
        "complete": round(sum(each.evidence == 1.0 for each in measured) / len(measured), 4),
        "tokens": round(sum(tokens) / len(tokens)),
        "tokens_max": max(tokens),
    }


def _changes(changes: Sequence[Mapping[str, bool]]) -> dict[str, Any]:
    if not changes:
        return {}
    both = [each for each in changes if each["current"] and each["old"]]
    return {
        "changes": {
            "questions": len(changes),
            "current": sum(each["current"] for each in changes),
            "old_alone": sum(each["old"] and not each["current"] for each in changes),
            "both": len(both),
            "marked": sum(each["marked"] for each in both),
            "later": sum(each["later"] for each in both),
            "clear": sum(each["marked"] or each["later"] for each in both),
        }
    }
