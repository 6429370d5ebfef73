"""The consolidator's tools, for an orchestrator's own agent that reads the pages of a session.

They do with an agent what ``memgraph.consolidation.page_model`` does with one call: the agent gets
a page and the memories that it may touch, and hands in the same operations. They are staged, and
written page by page by ``orc.jobs.consolidate``, with the same checks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from memgraph.consolidation.page_model import SCHEMA, AnswerReader, Claim, PagePrompt, supported
from memgraph.consolidation.ports import PageProposal, PageTurn, PageUnread, TurnPage
from memgraph.errors import Conflict, MemgraphError, ProviderAnswerInvalid
from memgraph.model.enums import ModelUse
from memgraph.operations.tools.declaration import Answer
from memgraph.operations.tools.tools import error_answer
from memgraph.providers.completion import object_schema, parsed_answer

if TYPE_CHECKING:
    from memgraph.operations.life.consolidation import SessionReport
    from memgraph.operations.orchestrator import Orchestrator

_LISTS: Final[Mapping[str, Any]] = SCHEMA["properties"]


class ConsolidatorTools:
    """The tools of an agent for one session; their state lives as long as this object.

    Args:
        handle: needs the permission to run jobs.
        session_id: the session to consolidate.
        agent: the agent's name, kept with its facts and in the journal.
    """

    def __init__(self, handle: Orchestrator, session_id: str, *, agent: str = "agent") -> None:
        self._handle = handle
        self._session_id = session_id
        self.name = agent
        self._page: TurnPage | None = None
        self._prompt: PagePrompt | None = None
        self._reader: AnswerReader | None = None
        self._claims: list[Claim] = []
        self._proposals: dict[tuple[PageTurn, ...], PageProposal] = {}
        self._is_ended = False

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools of a request in OpenAI's format."""
        return [
            {
                "type": "function",
                "function": {"name": name, "description": function.__doc__, "parameters": schema},
            }
            for name, (function, schema) in self._functions.items()
        ]

    def call(self, name: str, arguments: str | Mapping[str, Any] | None = None) -> Answer:
        """Run one call of the agent. A MemgraphError is returned as its code, not raised."""
        try:
            if name not in self._functions:
                raise Conflict("this tool does not exist")
            given = parsed_answer(arguments) if isinstance(arguments, str) else arguments
            function, _ = self._functions[name]
            return function(given if isinstance(given, Mapping) else {})
        except MemgraphError as error:
            return error_answer(error)

    @property
    def _functions(self) -> dict[str, tuple[Callable[[Mapping[str, Any]], Answer], dict[str, Any]]]:
        """The functions and the schemas of their arguments; a docstring is the description."""
        return {
            "is_session_consolidated": (self._is_read, object_schema()),
            "get_episodes_for_consolidation": (self._episodes, object_schema()),
            "save_facts_batch": (self._save, object_schema(facts=_LISTS["add"])),
            "detect_conflicts": (self._known, object_schema()),
            "resolve_conflict": (self._resolve, _LISTS["change"]["items"]),
            "mark_session_consolidated": (self._mark, object_schema()),
        }

    def propose(self, page: TurnPage) -> PageProposal:
        """See `Extractor.propose`: what was handed in for a page; any other page waits."""
        if page.turns in self._proposals:
            # A page of turns in several places is handed in place by place.
            return self._proposals[page.turns]
        if self._page is None or page.turns != self._page.turns:
            self._open(page)
        if not self._is_ended or self._prompt is None:
            raise PageUnread
        self._is_ended = False
        self._proposals[page.turns] = self._checked(page, self._prompt)
        return self._proposals[page.turns]

    def _open(self, page: TurnPage) -> None:
        self._page = page
        self._prompt = PagePrompt(page.turns, page.before, page.known())
        self._reader = AnswerReader(self._prompt, self.name, page.max_facts)
        self._claims = []

    def _checked(self, page: TurnPage, prompt: PagePrompt) -> PageProposal:
        with self._handle._service.opened(self._handle.name) as opened:
            model = opened.llm
        checking = None
        if model is not None and model.may_read(page.sensitivity):
            checking = model.completion_for(ModelUse.CONSOLIDATION)
        return supported(self._claims, checking, prompt, model=self.name)

    def _run(self) -> SessionReport:
        """Read the session as far as pages were handed in; no page is written before its end."""
        [report] = self._handle.jobs.consolidate(self._session_id, extractor=self)
        return report

    def _is_read(self, _given: Mapping[str, Any]) -> Answer:
        """Return whether every turn was read."""
        return {"consolidated": self._run().state != "pending"}

    def _episodes(self, _given: Mapping[str, Any]) -> Answer:
        """Return the next turns, numbered, and the known memories k1, k2 … that they may touch."""
        if self._run().state != "pending" or self._prompt is None:
            return {"consolidated": True}
        return self._prompt.text()

    def _opened(self) -> tuple[PagePrompt, AnswerReader]:
        if self._prompt is None or self._reader is None:
            raise Conflict("call get_episodes_for_consolidation first")
        return self._prompt, self._reader

    def _save(self, given: Mapping[str, Any]) -> Answer:
        """Hand in what is worth remembering in these turns. Each item gets an outcome or a code."""
        facts = given.get("facts")
        if not isinstance(facts, list):
            raise ProviderAnswerInvalid("facts must be a list", reason="facts")
        return {"results": [self._stage("add", fact) for fact in facts]}

    def _known(self, _given: Mapping[str, Any]) -> Answer:
        """Return the known memories that the turns may touch."""
        prompt, _ = self._opened()
        return {"known": [f"k{n} {each.content}" for n, each in enumerate(prompt.known, start=1)]}

    def _resolve(self, given: Mapping[str, Any]) -> Answer:
        """Say that a known memory changed (`text`: the whole new one) or ended (`text` empty)."""
        return self._stage("change" if given.get("text") else "end", given)

    def _stage(self, operation: str, item: Any) -> dict[str, Any]:
        _, reader = self._opened()
        claims, rejected = reader.read(
            {name: [item] if name == operation else [] for name in _LISTS}
        )
        self._claims += claims
        if claims:
            return {"outcome": "staged"}
        return {"outcome": "rejected", "code": rejected[-1].code}

    def _mark(self, _given: Mapping[str, Any]) -> Answer:
        """Store what was handed in and end these turns; if more are left, not `consolidated`."""
        self._opened()
        self._is_ended = True
        try:
            report = self._run()
        finally:
            self._is_ended = False
        return {
            "consolidated": report.state != "pending",
            "facts": [fact.memory_id for fact in report.facts],
            "replaced": list(report.replaced),
            "rejected": [each.code for each in report.rejected],
        }
