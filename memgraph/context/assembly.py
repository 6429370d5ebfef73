"""Select the memories of a context, and fit them into its token budget."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from memgraph.context.blocks import render, render_line
from memgraph.context.candidates import ContextCandidate, by_time, distinct, ranked
from memgraph.context.items import item_of
from memgraph.context.token_counters import TokenCounter
from memgraph.errors import ConfirmationMissing
from memgraph.model.context import (
    MAX_LEFT_OUT,
    BlockFormat,
    BlockLine,
    OmittedMemory,
    PackedItem,
    TierShares,
    TierUse,
)
from memgraph.model.enums import MemoryKind, Scope
from memgraph.rules.budget import allocated, divided, reached, select_within, token_cost
from memgraph.rules.similarity import word_set
from memgraph.store.rows import built
from memgraph.text.tokens import WORDS

CUT = " … "
"""The mark in place of a text's cut middle."""

_HEAD_PARTS, _PARTS = 2, 3
_SMALLER = 0.9
# The fewest characters of a shortened text, of each of its three parts, and of a word of the query.
_FEWEST = 20
_FEWEST_OF_THREE = 40
_FEWEST_LETTERS = 3
# The number of matches after a first one that are considered for the same part.
_LOOKED_AT = 50
# A blank is looked for at least this far from the cut, in characters.
_NEAR_CHARS = 12
_REMEMBERED_CHARS = 1_000
_BLANK = re.compile(r"\s")
_LAST_WORD = re.compile(r"\s\S*\Z")


def fitted(
    line: BlockLine,
    format: BlockFormat,  # noqa: A002  the word that requests and settings have for it
    limit: int,
    count: Callable[[str], int],
    words: Collection[str] = (),
) -> tuple[BlockLine, str, int]:
    """Render a line, and shorten its text if it costs more than ``limit`` tokens; see `shortened`.

    Return the line, its rendering and its cost. If not even twenty characters of the text fit, the
    line stays unchanged.
    """
    rendered, cost = written(line, format, count)
    if cost <= limit:
        return line, rendered, cost
    bare = count(render_line(_with_text(line, CUT), format))
    # This is enough if tokens are spread evenly; if not, try a tenth less.
    length = int(len(line.text) * max(limit - bare, 0) / max(cost - bare, 1))
    while length >= _FEWEST:
        shorter = _with_text(line, shortened(line.text, length, words))
        rendered_shorter = render_line(shorter, format)
        smaller = count(rendered_shorter)
        if smaller <= limit:
            return shorter, rendered_shorter, smaller
        length = int(length * _SMALLER)
    return line, rendered, cost


def shortened(text: str, length: int, words: Collection[str] = ()) -> str:
    """Shorten a text to about ``length`` characters, with a mark where it is cut.

    Two thirds are taken from the beginning and one third from the end. If the middle has some of
    the words that both ends lack, a third each is taken from the beginning, from the place with
    most of these words, and from the end. The text is cut between words if there are blanks.

    Args:
        words: the words of the query, case-folded.
    """
    if len(text) <= length:
        return text
    third = length // _PARTS
    start = _place_of(text, words, third)
    if start is None:
        head = length * _HEAD_PARTS // _PARTS
        spans = [(0, head), (len(text) - (length - head), len(text))]
    elif start - third <= len(CUT):
        spans = [(0, start + third), (len(text) - third, len(text))]
    else:
        spans = [(0, third), (start, start + third), (len(text) - third, len(text))]
    return CUT.join(_between_words(text, *span).strip() for span in spans)


def _place_of(text: str, words: Collection[str], width: int) -> int | None:
    """Return where the part of a text with most of the words that its ends lack begins, or None."""
    if not words or width < _FEWEST_OF_THREE:
        return None
    end = len(text) - width
    matches = [
        (match.start(), match.end(), word)
        for match in WORDS.finditer(text)
        if len(word := match.group().casefold()) >= _FEWEST_LETTERS and word in words
    ]
    present = {word for first, last, word in matches if last <= width or first >= end}
    missing = [
        match
        for match in matches
        if match[2] not in present and match[0] >= width and match[1] <= end
    ]
    best: tuple[int, int, int] | None = None
    for at, (first, _, _) in enumerate(missing):
        inside = [match for match in missing[at : at + _LOOKED_AT] if match[1] <= first + width]
        word_count = len({word for _, _, word in inside})
        if inside and (best is None or word_count > best[0]):
            best = (word_count, first, inside[-1][1])
    if best is None:
        return None
    _, first, last = best
    return min(max(first - (width - (last - first)) // 2, width), end - width)


def _between_words(text: str, start: int, end: int) -> str:
    """Return a span of a text without the words that it cuts, if there is a blank nearby."""
    near = max((end - start) // 2, min(end - start, _NEAR_CHARS))
    if start and not text[start - 1].isspace():
        blank = _BLANK.search(text, start, start + near)
        start = start if blank is None else blank.end()
    if end < len(text) and not text[end].isspace():
        part = _LAST_WORD.search(text, end - near, end)
        end = end if part is None else part.start()
    return text[start:end]


def written(
    line: BlockLine,
    format: BlockFormat,  # noqa: A002  as above
    count: Callable[[str], int],
) -> tuple[str, int]:
    """Return a rendered line and its cost."""
    if len(line.text) > _REMEMBERED_CHARS:
        rendered = render_line(line, format)
        return rendered, count(rendered)
    content = (line.memory_id, line.kind, line.text, line.at, line.citation, line.mark)
    # Confidence decays continuously, but a line shows only two digits of it.
    return _remembered(content, round(line.confidence, 2), format, count)


@lru_cache(maxsize=4_096)
def _remembered(
    content: tuple[str, MemoryKind, str, int, str, str],
    confidence: float,
    format: BlockFormat,  # noqa: A002  as above
    count: Callable[[str], int],
) -> tuple[str, int]:
    """Return a rendered line and its cost. Cached, since many contexts have the same memories."""
    memory_id, kind, text, at, citation, mark = content
    fields = {
        "memory_id": memory_id,
        "kind": kind,
        "text": text,
        "at": at,
        "citation": citation,
        "confidence": confidence,
        "mark": mark,
    }
    rendered = render_line(built(BlockLine, fields), format)
    return rendered, count(rendered)


def _with_text(line: BlockLine, text: str) -> BlockLine:
    return line.model_copy(update={"text": text})


OVER_BUDGET, TOO_LARGE, MAX_ITEMS, DUPLICATE = "over_budget", "too_large", "max_items", "duplicate"
QUERY = "query"
# A cut line may take half of what its tier can have, or what uncut lines leave, but at least 120
# tokens.
_LEAST_LINE, _ITEMS_OF_A_TIER = 120, 2
# The tokens that are left free when lines together may cost more than one by one.
_JOINING = 4


@dataclass(frozen=True, slots=True)
class ContextPlan:
    """The parameters of a context; see ``ContextRequest``.

    Attributes:
        mark: the mark of the fence, 16 hexadecimal digits.
        query: memories that repeat it are left out, and shortened texts keep the part with its
            words.
        min_relevance: less relevant memories are not recalled; None: all are.
    """

    budget_tokens: int
    shares: TierShares
    head_tail: int
    format: BlockFormat
    max_items: int
    mark: str
    query: str = ""
    min_relevance: float | None = None


@dataclass(frozen=True, slots=True)
class AssembledContext:
    """A context without its ids: see ``ContextPackage``.

    ``left_out_reasons`` is the number of omitted memories by reason.
    """

    items: tuple[PackedItem, ...] = ()
    text: str = ""
    token_cost: int = 0
    tiers: Mapping[Scope, TierUse] = field(default_factory=dict)
    left_out: tuple[OmittedMemory, ...] = ()
    left_out_count: int = 0
    left_out_reasons: Mapping[str, int] = field(default_factory=dict)
    compression_ratio: float = 1.0


@dataclass(frozen=True, slots=True)
class _Line:
    """A candidate as it would be written, with the reasons for its rank.

    ``place`` is its rank within its tier, from 0.
    """

    candidate: ContextCandidate
    text: str
    rendered: str
    cost: int
    reasons: tuple[str, ...]
    place: int

    @property
    def memory_id(self) -> str:
        return self.candidate.memory.memory_id

    @property
    def shortened(self) -> bool:
        return self.text != self.candidate.memory.content


def assembled(
    candidates: Iterable[ContextCandidate], plan: ContextPlan, counter: TokenCounter
) -> AssembledContext:
    """Assemble a context from candidates, one for each memory.

    Candidates of a tier without a share are ignored.
    """
    weights = {tier: plan.shares.of(tier) for tier in Scope}
    offered = [candidate for candidate in candidates if weights[candidate.tier] > 0.0]
    candidates_by_id = sorted(offered, key=lambda each: each.memory.memory_id)
    distinct_candidates = distinct(candidates_by_id, plan.query)
    frame = _frame(candidates_by_id, plan, counter)
    room = max(plan.budget_tokens - frame.cost, 0)
    lines_by_tier = {tier: _whole(distinct_candidates.kept, tier, plan, counter) for tier in Scope}
    costs = {tier: sum(line.cost for line in own) for tier, own in lines_by_tier.items()}
    reach = reached(costs, room, weights)
    cutting = _Cutting(plan, counter, room, word_set(plan.query))
    lines = {
        line.memory_id: line
        for tier, own in lines_by_tier.items()
        for line in cutting.within(own, reach[tier])
    }
    offers = {
        tier: [
            (memory_id, line.cost)
            for memory_id, line in lines.items()
            if line.candidate.tier is tier
        ]
        for tier in Scope
    }
    together = {
        memory_id: line.candidate.against
        for memory_id, line in lines.items()
        if line.candidate.against
    }
    allocation = allocated(offers, room, weights, together, reach)
    fitting = [memory_id for tier_ids in allocation.chosen.values() for memory_id in tier_ids]
    chosen = _at_most(plan.max_items, [lines[memory_id] for memory_id in fitting], together)
    beyond = set(fitting) - {line.memory_id for line in chosen}
    chosen, text, cost = _written(
        cutting.grown(chosen), frame, plan.budget_tokens, counter, together
    )
    inside = {line.memory_id for line in chosen}
    left_out = [
        *(
            _left(line, _reason(line, room, beyond))
            for memory_id, line in lines.items()
            if memory_id not in inside
        ),
        *(
            (len(lines), _omitted(candidate, DUPLICATE))
            for candidate in distinct_candidates.repeated
        ),
        *((len(lines), _omitted(candidate, QUERY)) for candidate in distinct_candidates.asked),
    ]
    left_out.sort(key=lambda each: (each[0], each[1].memory_id))
    shares = divided(room, weights)
    return AssembledContext(
        items=tuple(_packed(line) for line in chosen),
        text=text,
        token_cost=cost,
        tiers={tier: _use(tier, shares[tier], chosen, candidates_by_id) for tier in Scope},
        left_out=tuple(omitted for _, omitted in left_out[:MAX_LEFT_OUT]),
        left_out_count=len(left_out),
        left_out_reasons=Counter(omitted.reason for _, omitted in left_out),
        compression_ratio=_ratio(chosen, candidates_by_id),
    )


@dataclass(frozen=True, slots=True)
class _Frame:
    """The text before and after the lines of a block, and its cost."""

    before: str = ""
    after: str = ""
    cost: int = 0


def _frame(
    candidates: Sequence[ContextCandidate], plan: ContextPlan, counter: TokenCounter
) -> _Frame:
    if not candidates:
        return _Frame()
    line = _line_of(candidates[0], "")
    whole, alone = render([line], plan.format, mark=plan.mark), render_line(line, plan.format)
    before, _, after = whole.partition(alone)
    return _Frame(before, after, counter.count(whole) - counter.count(alone))


def _whole(
    candidates: Sequence[ContextCandidate], tier: Scope, plan: ContextPlan, counter: TokenCounter
) -> list[_Line]:
    """Return the uncut lines of one tier, best first."""
    lines = []
    of_tier = [candidate for candidate in candidates if candidate.tier is tier]
    for place, (candidate, reasons) in enumerate(ranked(of_tier, tier, plan.head_tail)):
        line = _line_of(candidate, candidate.memory.content)
        rendered, cost = written(line, plan.format, counter.count)
        lines.append(_Line(candidate, line.text, rendered, cost, reasons, place))
    return lines


@dataclass(frozen=True, slots=True)
class _Cutting:
    """Shortens lines that do not fit; ``words`` are the words of the query."""

    plan: ContextPlan
    counter: TokenCounter
    room: int
    words: frozenset[str]

    def within(self, lines: Sequence[_Line], reach: int) -> list[_Line]:
        """Return the lines of a tier, and cut those that cost more than ``reach`` tokens."""
        long = sum(line.cost > reach for line in lines)
        remaining = reach - sum(line.cost for line in lines if line.cost <= reach)
        limit = max(reach // _ITEMS_OF_A_TIER, remaining // max(long, 1), _LEAST_LINE)
        return [self._cut(line, limit) if line.cost > reach else line for line in lines]

    def grown(self, chosen: Sequence[_Line]) -> list[_Line]:
        """Give the remaining tokens to cut lines, best first, and return all lines."""
        rest = self._most - sum(line.cost for line in chosen)
        longer: dict[str, _Line] = {}
        for line in sorted(chosen, key=lambda each: each.place):
            if line.shortened and rest > 0:
                again = self._cut(line, line.cost + rest)
                if line.cost < again.cost <= line.cost + rest:
                    longer[line.memory_id] = again
                    rest -= again.cost - line.cost
        return [longer.get(line.memory_id, line) for line in chosen]

    @property
    def _most(self) -> int:
        return self.room if self.counter.by_line else max(self.room - _JOINING, 0)

    def _cut(self, line: _Line, limit: int) -> _Line:
        uncut = _line_of(line.candidate, line.candidate.memory.content)
        max_tokens = min(limit, self._most)
        shorter, rendered, cost = fitted(
            uncut, self.plan.format, max_tokens, self.counter.count, self.words
        )
        return replace(line, text=shorter.text, rendered=rendered, cost=cost)


def _line_of(candidate: ContextCandidate, text: str) -> BlockLine:
    return built(
        BlockLine,
        {
            "memory_id": candidate.memory.memory_id,
            "kind": candidate.memory.kind,
            "text": text,
            "at": candidate.at,
            "citation": candidate.shown,
            "confidence": candidate.confidence,
            "mark": candidate.mark,
        },
    )


def _at_most(
    max_items: int, fitting: Sequence[_Line], together: Mapping[str, Collection[str]]
) -> list[_Line]:
    """Return the best lines, at most ``max_items``, taking the tiers in turns.

    Both sides of a contradiction are kept, or neither of them.
    """
    by_place = sorted(fitting, key=lambda line: line.place)
    memory_ids = select_within(
        [(line.memory_id, 1) for line in by_place], max_items, together
    ).chosen
    inside = set(memory_ids)
    return [line for line in fitting if line.memory_id in inside]


def _written(
    chosen: Sequence[_Line],
    frame: _Frame,
    budget: int,
    counter: TokenCounter,
    together: Mapping[str, Collection[str]],
) -> tuple[list[_Line], str, int]:
    """Return the lines in order, the block, and its cost as a whole.

    The block may cost more than its lines one by one. As long as it exceeds the budget, the last
    line is dropped with the lines that belong to it.
    """
    ordered = _in_order(chosen)
    while ordered:
        text = frame.before + "".join([line.rendered for line in ordered]) + frame.after
        if counter.by_line:
            cost = frame.cost + sum(line.cost for line in ordered)
        else:
            cost = counter.count(text)
        if cost <= budget:
            return ordered, text, cost
        last = ordered[-1].memory_id
        removed = {last, *together.get(last, ())}
        ordered = [line for line in ordered if line.memory_id not in removed]
    return [], "", 0


def _in_order(chosen: Sequence[_Line]) -> list[_Line]:
    """Return the task's lines in time order, then the project's and the global ones by rank.

    The later side of an open contradiction comes right before the earlier one.
    """
    of_task = [line for line in chosen if line.candidate.tier is Scope.SESSION]
    ordered = [
        *sorted(of_task, key=lambda line: by_time(line.candidate)),
        *(line for line in chosen if line.candidate.tier is not Scope.SESSION),
    ]
    by_id = {line.memory_id: line for line in ordered}
    placed: dict[str, _Line] = {}
    for line in ordered:
        others = (by_id[opponent] for opponent in line.candidate.against if opponent in by_id)
        later = (
            opponent for opponent in others if by_time(opponent.candidate) > by_time(line.candidate)
        )
        newest_first = sorted(later, key=lambda opponent: by_time(opponent.candidate), reverse=True)
        for item in (*newest_first, line):
            placed.setdefault(item.memory_id, item)
    return list(placed.values())


def _packed(line: _Line) -> PackedItem:
    candidate = line.candidate
    return built(
        PackedItem,
        {
            "item": item_of(candidate.memory),
            "tier": candidate.tier,
            "memory_id": line.memory_id,
            "kind": candidate.memory.kind,
            "type": candidate.memory.type,
            "text": line.text,
            "shortened": line.shortened,
            "token_cost": line.cost,
            "reasons": line.reasons,
            "citation": candidate.citation,
            "at": candidate.at,
            "confidence": candidate.confidence,
        },
    )


def _reason(line: _Line, room: int, beyond: Collection[str]) -> str:
    if line.memory_id in beyond:
        return MAX_ITEMS
    return TOO_LARGE if line.cost > room else OVER_BUDGET


def _left(line: _Line, reason: str) -> tuple[int, OmittedMemory]:
    omitted = built(
        OmittedMemory,
        {
            "memory_id": line.memory_id,
            "tier": line.candidate.tier,
            "reason": reason,
            "token_cost": line.cost,
        },
    )
    return line.place, omitted


def _omitted(candidate: ContextCandidate, reason: str) -> OmittedMemory:
    return built(
        OmittedMemory,
        {
            "memory_id": candidate.memory.memory_id,
            "tier": candidate.tier,
            "reason": reason,
            "token_cost": candidate.memory.token_cost,
        },
    )


def _use(
    tier: Scope, share: int, chosen: Sequence[_Line], candidates: Sequence[ContextCandidate]
) -> TierUse:
    own = [line for line in chosen if line.candidate.tier is tier]
    return built(
        TierUse,
        {
            "share_tokens": share,
            "spent": sum(line.cost for line in own),
            "offered": sum(candidate.tier is tier for candidate in candidates),
            "chosen": len(own),
        },
    )


def _ratio(chosen: Sequence[_Line], candidates: Sequence[ContextCandidate]) -> float:
    """Return the compression ratio. Both sides are estimated, regardless of the block's counter."""
    considered = sum(candidate.memory.token_cost for candidate in candidates)
    tokens_used = sum(
        token_cost(line.text) if line.shortened else candidate.memory.token_cost
        for line in chosen
        for candidate in (line.candidate,)
    )
    return tokens_used / considered if considered else 1.0


ConfirmationCallback = Callable[[str], bool]
"""Asks a person a question and returns True for yes and False for no; it may take time."""


def confirmed(callback: ConfirmationCallback | None, question: str) -> bool:
    """Ask a person for consent; return True for yes.

    Only True is consent and only False is a refusal: any other answer, such as the None of a
    callback that forgot to return one, is an error.

    Raises:
        ConfirmationMissing: nobody can be asked, the callback failed, or its answer is neither.
    """
    if callback is None:
        raise ConfirmationMissing("a person must consent: pass a confirmation_callback")
    try:
        answer = callback(question)
    except Exception as error:
        raise ConfirmationMissing(
            "could not ask for consent: the confirmation_callback failed",
            error=type(error).__name__,
        ) from error
    if answer is not True and answer is not False:
        raise ConfirmationMissing(
            "no consent was given: a confirmation_callback must return True or False",
            given=type(answer).__name__,
        )
    return answer
