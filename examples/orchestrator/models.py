"""The model: one that is scripted and needs nothing, or any that litellm reaches."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import yaml


class ModelFailed(Exception):
    """The model gave no answer; the text says why, in words for a person."""


class Model(Protocol):
    """Whatever writes text."""

    def ask(self, purpose: str, system: str, user: str) -> str:
        """An answer, or ModelFailed. ``purpose``: ``select``, ``diagnose`` or a step's id."""
        ...


@dataclass(frozen=True)
class Rule:
    """Answers where all of ``asked`` stand in the message, and of ``knows`` in what is put beside.

    ``{id:words}`` becomes the short id, in brackets, of the first memory shown that holds the
    words.
    """

    answer: str
    purpose: str | None = None
    asked: tuple[str, ...] = ()
    knows: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: Any) -> Rule:
        if not isinstance(given, dict) or "answer" not in given or given.keys() - _FIELDS:
            raise ValueError(f"a rule has an answer, and purpose, asked or knows: {given!r}")
        said = given["answer"]
        return cls(
            answer=said if isinstance(said, str) else json.dumps(said),
            purpose=given.get("purpose"),
            asked=tuple(given.get("asked", ())),
            knows=tuple(given.get("knows", ())),
        )

    def fits(self, purpose: str, system: str, user: str) -> bool:
        return (
            self.purpose in (None, purpose)
            and all(each.casefold() in user.casefold() for each in self.asked)
            and all(each.casefold() in system.casefold() for each in self.knows)
        )


_FIELDS = frozenset(("answer", "purpose", "asked", "knows"))
_CITATION = re.compile(r"\{id:([^}]+)\}")


class ScriptedModel:
    """Answers by the first rule of a YAML or JSON file that fits; the same every time."""

    def __init__(self, path: Path) -> None:
        try:
            given = yaml.safe_load(path.read_text(encoding="utf-8"))
        except yaml.YAMLError as error:
            raise ValueError(f"{path} is not YAML: {error}") from error
        if not isinstance(given, list):
            raise ValueError(f"{path} is not a list of rules")  # noqa: TRY004 - a file, not a type
        self._rules = [Rule.of(each) for each in given]

    def ask(self, purpose: str, system: str, user: str) -> str:
        for rule in self._rules:
            if rule.fits(purpose, system, user):
                return _CITATION.sub(lambda match: _cited(match[1], system), rule.answer)
        raise ModelFailed(f"the script has no answer for the purpose {purpose}")


def _cited(words: str, system: str) -> str:
    """The bracketed short id of the memory that holds the words, empty where none was shown."""
    for line in system.splitlines():
        text, _, short = line.rpartition(" #")
        if text.startswith("[") and words.casefold() in text.casefold():
            return f"[#{short}]"
    return ""


class LitellmModel:
    """Any model, as litellm names it, for instance ``ollama/llama3``."""

    def __init__(self, name: str, *, api_base: str | None = None, timeout_s: float = 60.0) -> None:
        # litellm would fetch a price list and read a .env file when it is imported.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
        try:
            import litellm
            import openai
        except ImportError as error:
            raise ModelFailed(
                '--model needs litellm: pip install "memgraph-memory[litellm]"'
            ) from error
        litellm.telemetry = False
        litellm.suppress_debug_info = True  # it would print advice to standard output
        self._complete: Any = litellm.completion
        self._errors = (openai.OpenAIError, ValueError)
        self._name = name
        self._rest: dict[str, Any] = {"api_base": api_base, "timeout": timeout_s, "num_retries": 1}

    def ask(self, purpose: str, system: str, user: str) -> str:  # noqa: ARG002 - a script's affair
        told = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        try:
            answer = self._complete(model=self._name, messages=told, **self._rest)
        except self._errors as error:
            # The error's own text may quote the request and the key.
            raise ModelFailed(f"{self._name} failed: {type(error).__name__}") from None
        text = answer.choices[0].message.content
        if not text or not text.strip():
            raise ModelFailed(f"{self._name} answered with nothing")
        return str(text).strip()
