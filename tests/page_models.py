"""A scripted language model over HTTP that reads pages, compares facts and checks statements."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from model_server import Behaviour, ModelServer, Reply

NAME = "litellm/openai/any"
_STATEMENT = re.compile(r"^statement \d+ \(cites [\d, ]+\): (.*)$", re.MULTILINE)


class PageModel:
    """Answers each question to a model by its kind.

    Args:
        answers: for each page an answer (JSON value, text, or a behaviour), the last one for ever.
        says: the verdict on a statement, such as "yes", or "partly: the part that is said".

    Attributes:
        pages, checks, profiles, others: the texts of the questions so far.
        relations: the answer to each question how facts relate.
    """

    def __init__(
        self,
        server: ModelServer,
        *answers: Any,
        says: Callable[[str], str] = lambda _statement: "yes",
    ) -> None:
        self.server = server
        self.pages: list[str] = []
        self.checks: list[str] = []
        self.profiles: list[str] = []
        self.others: list[str] = []
        self._answers = list(answers) or [{"add": []}]
        self.says = says
        self.relations: Any = {"verdicts": []}
        server.behave(self._reply)

    def then(self, *answers: Any) -> None:
        """Answer the next pages with these."""
        self._answers = list(answers)

    @property
    def calls(self) -> int:
        return len(self.server.requests)

    def _reply(self, request: dict[str, Any]) -> Reply:
        properties = request["response_format"]["json_schema"]["schema"]["properties"]
        user = request["messages"][-1]["content"]
        if "add" in properties:
            self.pages.append(user)
            answers = self._answers
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
            return written(self.server, answer)(request)
        if "says" in properties.get("verdicts", {}).get("items", {}).get("properties", {}):
            self.checks.append(user)
            verdicts = []
            for number, text in enumerate(_STATEMENT.findall(user), start=1):
                says, _, part = self.says(text).partition(": ")
                verdicts.append({"statement": number, "differs": "", "says": says, "text": part})
            return written(self.server, {"verdicts": verdicts})(request)
        if "profiles" in properties:
            self.profiles.append(user)
            return written(self.server, {"profiles": [{"entity": 1, "sentences": []}]})(request)
        self.others.append(user)
        return written(self.server, self.relations)(request)


def written(server: ModelServer, answer: Any) -> Behaviour:
    """Return the behaviour that writes an answer."""
    if callable(answer):
        behaviour: Behaviour = answer
        return behaviour
    is_text = isinstance(answer, str)
    return server.writes(answer if is_text else json.dumps(answer, ensure_ascii=False))


def settings(server: ModelServer, **more: Any) -> dict[str, Any]:
    """Return the settings of a service that uses the server's model."""
    return {
        "memory.llm.provider": NAME,
        "memory.llm.api_base": server.url,
        "memory.llm.api_key_from": "KEY",
        "memory.embedding.provider": "none",
        **more,
    }


def add(text: str, turns: Any, quote: str, **more: Any) -> dict[str, Any]:
    """Return an operation that adds a fact."""
    fields = {"type": "Fact", "happened": "", "entities": [], "importance": 50}
    return {"text": text, "turns": turns, "quote": quote} | fields | more
