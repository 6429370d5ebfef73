"""A language model that reads a page of turns and proposes facts through the consolidator's tools.

If the model is unavailable, the page is left for a later run. If its output is unusable, that is
recorded, and only labelled sentences are extracted from the page. So it is with pages that are too
sensitive to be sent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from memgraph.consolidation.agent_tools import (
    SYSTEM,
    TOOLS,
    ConsolidatorTools,
    estimated_tokens,
    random_mark,
)
from memgraph.consolidation.ports import PageProposal
from memgraph.errors import ProviderAnswerInvalid, ProviderError, ProviderRejected
from memgraph.model.jobs import MAX_REJECTED_KEPT
from memgraph.providers.tool_calls import as_message

if TYPE_CHECKING:
    from memgraph.consolidation.ports import Extractor, TurnPage
    from memgraph.model.enums import Sensitivity
    from memgraph.model.jobs import RejectedItem
    from memgraph.providers.tool_calls import ChatTurn, ToolCallingProvider

MAX_CALLS_PER_PAGE: Final = 8

# With these errors any other page would be refused, too. Without a status nothing was sent.
_NOT_OF_THE_PAGE: Final = frozenset({None, 401, 402, 403, 404})
_TOOL_TOKENS: Final = estimated_tokens(list(TOOLS))


class AgentExtractor:
    """Proposes facts with a model that calls tools.

    Args:
        provider: the model.
        otherwise: the extractor for pages that the model cannot or must not read.
        max_sensitivity: pages above it are not sent.
        max_calls: the maximum number of model calls for one page.
        mark: makes the random word that fences data in a prompt.
    """

    def __init__(
        self,
        provider: ToolCallingProvider,
        otherwise: Extractor,
        *,
        max_sensitivity: Sensitivity,
        max_calls: int = MAX_CALLS_PER_PAGE,
        mark: Callable[[], str] = random_mark,
    ) -> None:
        self._provider = provider
        self._otherwise = otherwise
        self._max_sensitivity = max_sensitivity
        self._max_calls = max_calls
        self._mark = mark

    @property
    def name(self) -> str:
        return self._provider.name

    def propose(self, page: TurnPage) -> PageProposal:
        """See `Extractor.propose`; what is unusable is left to the other extractor.

        Raises:
            ProviderUnavailable: the page stays for a later run.
            ProviderRejected: the key or the model was refused; the page stays, too. If only this
                request was refused, for instance as too long, the other extractor reads the page.
        """
        if not page.turns or page.sensitivity.level > self._max_sensitivity.level:
            return self._otherwise.propose(page)
        conversation = _Conversation(self._provider, page, self._mark())
        try:
            finished = conversation.run(self._max_calls)
        except (ProviderAnswerInvalid, ProviderRejected) as error:
            if isinstance(error, ProviderRejected) and not _is_about_the_page(error):
                raise
            conversation.told(error.code)
            finished = True
        proposal = conversation.proposal(complete=finished)
        if not finished or conversation.usable:
            return proposal
        conversation.told("agent.unusable")
        labelled = self._otherwise.propose(page)
        return replace(
            labelled,
            rejected=(*conversation.rejected, *labelled.rejected),
            calls=proposal.calls + labelled.calls,
            tokens=proposal.tokens + labelled.tokens,
        )


def _is_about_the_page(error: ProviderRejected) -> bool:
    """Return True when the error is about this request, for instance too long for the model."""
    return error.details.get("status") not in _NOT_OF_THE_PAGE


class _Conversation:
    """The exchange with the model about one page."""

    def __init__(self, provider: ToolCallingProvider, page: TurnPage, mark: str) -> None:
        self._provider = provider
        self._page = page
        self._tools = ConsolidatorTools(page, model=provider.name, mark=mark)
        self._calls = 0
        self._tokens = 0
        self._messages: list[dict[str, Any]] = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": self._opening()},
        ]
        self._size = _TOOL_TOKENS + sum(estimated_tokens(m["content"]) for m in self._messages)

    @property
    def usable(self) -> bool:
        """True when the model proposed a valid fact, or ended the page without proposing any.

        False when all of its facts were rejected.
        """
        return bool(self._tools.facts) or (self._tools.ended and not self._tools.saved)

    @property
    def rejected(self) -> tuple[RejectedItem, ...]:
        return self._tools.rejected

    def told(self, code: str) -> None:
        """Record a code for the page as a whole."""
        self._tools.told(code, self._page.turns[0].memory_id, room=MAX_REJECTED_KEPT - 1)

    def run(self, max_calls: int) -> bool:
        """Let the model work until it is done.

        Returns:
            False: the run was stopped, or the budget was spent before the model proposed a fact.
        """
        for _ in range(max_calls):
            if self._page.stop():
                return False
            if self._page.budget.exhausted:
                # Keep the facts so far: otherwise a page that exceeds the budget never ends.
                self.told("agent.budget_spent")
                return bool(self._tools.facts)
            turn = self._ask()
            if not turn.tool_calls:
                return True
            self._answer(turn)
            if self._tools.ended or self._tools.hopeless:
                return True
        self.told("agent.too_many_calls")
        return True

    def proposal(self, *, complete: bool) -> PageProposal:
        return PageProposal(
            facts=tuple(self._tools.facts),
            resolutions=tuple(self._tools.resolutions),
            rejected=self.rejected,
            calls=self._calls,
            tokens=self._tokens,
            complete=complete,
        )

    def _opening(self) -> str:
        limit = self._page.max_facts
        return (
            f"Hand in at most {limit} facts, the ones that matter most. The session's id and the "
            f"episodes of this page:\n{self._tools.episodes()}"
        )

    def _ask(self) -> ChatTurn:
        try:
            turn = self._provider.chat(self._messages, TOOLS)
        except ProviderError:
            # The model may have read the whole prompt before the call failed.
            self._spend(self._size)
            raise
        message = as_message(turn)
        self._messages.append(message)
        written = estimated_tokens(message)
        self._spend(
            (turn.tokens_in if turn.tokens_in is not None else self._size)
            + (turn.tokens_out if turn.tokens_out is not None else written)
        )
        self._size += written
        return turn

    def _answer(self, turn: ChatTurn) -> None:
        for call in turn.tool_calls:
            if self._tools.hopeless:
                break
            content = self._tools.call(call.name, call.arguments_text)
            self._messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
            self._size += estimated_tokens(content)

    def _spend(self, tokens: int) -> None:
        self._calls += 1
        self._tokens += tokens
        self._page.budget.spend(calls=1, tokens=tokens)
