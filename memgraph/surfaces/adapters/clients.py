"""Wrap a client of a model API, so that it stores turns and adds memories to messages.

Works with any client that has the methods of OpenAI's or Anthropic's clients, and imports neither.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol, TypeVar, cast
from uuid import uuid4

from memgraph.errors import MemgraphError

_Client = TypeVar("_Client")
_log = logging.getLogger(__name__)
_ASSISTANT: Final = "assistant"


class _Block(Protocol):
    @property
    def text(self) -> str: ...


class TurnMemory(Protocol):
    """The methods of a local or a remote orchestrator that are used here."""

    def context(self, prompt: str, *, exclude_session_id: str | None) -> _Block: ...

    def save_episode(self, content: str, *, session_id: str, source_role: str) -> str: ...


def remembering(
    client: _Client, orc: TurnMemory, *, session_id: str | None = None, speaker: str = "user"
) -> _Client:
    """Return a wrapped client whose calls store their turns and receive relevant memories.

    Covers ``chat.completions.create`` and ``responses.create`` of OpenAI's clients and
    ``messages.create`` of Anthropic's, also of asynchronous clients and with ``stream=True``.
    Memories about a message are put before its text in the request; the caller's list is not
    changed. When the call succeeds, the message and the answer are stored as turns of the session.
    If memgraph fails, a warning is logged and the call continues without memories.

    Args:
        session_id: the id of the conversation; None: a new one.
        speaker: the name of the person who writes the messages.
    """
    turns = _Turns(orc, session_id or str(uuid4()), speaker)
    return cast("_Client", _Node(client, (), turns))


@dataclass(frozen=True, slots=True)
class _Api:
    """Where an API keeps messages and texts in its requests, answers and streams."""

    member: str
    part: str
    answer: Callable[[Any], str]
    delta: Callable[[Any], str | None]


_APIS: Final[Mapping[tuple[str, ...], _Api]] = {
    ("chat", "completions", "create"): _Api(
        "messages",
        "text",
        lambda answer: _text(answer.choices[0].message.content) if answer.choices else "",
        lambda chunk: chunk.choices[0].delta.content if chunk.choices else None,
    ),
    ("responses", "create"): _Api(
        "input",
        "input_text",
        lambda answer: _text(answer.output_text),
        lambda event: event.delta if event.type == "response.output_text.delta" else None,
    ),
    ("messages", "create"): _Api(
        "messages",
        "text",
        lambda answer: _text(answer.content),
        lambda event: (
            getattr(event.delta, "text", None) if event.type == "content_block_delta" else None
        ),
    ),
}
_COPIES: Final = (("with_options",), ("copy",))
_TEXTS: Final = ("text", "input_text")


class _Node:
    """A proxy for a part of a client that leads to a wrapped method; the rest is passed through."""

    def __init__(self, target: Any, path: tuple[str, ...], turns: _Turns) -> None:
        self._target = target
        self._path = path
        self._turns = turns

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        path = (*self._path, name)
        if path in _APIS:
            return partial(self._turns.create, _APIS[path], value)
        if path in _COPIES:
            return lambda *args, **kwargs: _Node(value(*args, **kwargs), (), self._turns)
        return _Node(value, path, self._turns) if path in _STEPS else value

    def __enter__(self) -> _Node:
        self._target.__enter__()
        return self

    def __exit__(self, *raised: Any) -> Any:
        return self._target.__exit__(*raised)

    async def __aenter__(self) -> _Node:
        await self._target.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> Any:
        return await self._target.__aexit__(*raised)


_STEPS: Final = frozenset(path[:end] for path in _APIS for end in range(1, len(path)))


@dataclass(frozen=True, slots=True)
class _Turns:
    orc: TurnMemory
    session_id: str
    speaker: str

    def create(self, api: _Api, method: Callable[..., Any], *args: Any, **request: Any) -> Any:
        if inspect.iscoroutinefunction(inspect.unwrap(method)):
            return self._create_async(api, method, *args, **request)
        message, request = self._with_memories(api, request)
        answer = method(*args, **request)
        if request.get("stream"):
            return _Stream(answer, api, partial(self._keep, message))
        self._keep(message, api.answer(answer))
        return answer

    async def _create_async(
        self, api: _Api, method: Callable[..., Any], *args: Any, **request: Any
    ) -> Any:
        message, request = await asyncio.to_thread(self._with_memories, api, request)
        answer = await method(*args, **request)
        if request.get("stream"):
            return _Stream(answer, api, partial(self._keep, message))
        await asyncio.to_thread(self._keep, message, api.answer(answer))
        return answer

    def _with_memories(self, api: _Api, request: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the new message and the request to send.

        The message is "" if the call only continues an earlier one, such as after a tool call.
        """
        given = request.get(api.member)
        messages = [{"role": "user", "content": given}] if isinstance(given, str) else given
        if not isinstance(messages, Sequence):
            return "", request
        place = next(
            (at for at in reversed(range(len(messages))) if _said_by_user(messages[at])), None
        )
        if place is None:
            return "", request
        message = _text(messages[place]["content"])
        block = self._known(message)
        if block:
            content = messages[place]["content"]
            parts = [{"type": api.part, "text": block}, *content]
            extended = block + content if isinstance(content, str) else parts
            changed = [*messages]
            changed[place] = {**messages[place], "content": extended}
            request = {**request, api.member: changed}
        # If the message is not the last entry, tool results follow, and it was stored before.
        return (message if place == len(messages) - 1 else ""), request

    def _known(self, message: str) -> str:
        try:
            return self.orc.context(message, exclude_session_id=self.session_id).text
        except MemgraphError as error:
            _log.warning("no memories for this message: %s", error.code)
            return ""

    def _keep(self, message: str, answer: str) -> None:
        for role, text in ((self.speaker, message), (_ASSISTANT, answer)):
            if not text.strip():
                continue
            try:
                self.orc.save_episode(text, session_id=self.session_id, source_role=role)
            except MemgraphError as error:
                _log.warning("a turn was not kept: %s", error.code)


@dataclass(slots=True)
class _Stream:
    """A stream whose turn is stored when it ends or is closed early."""

    stream: Any
    api: _Api
    keep: Callable[[str], None]
    said: list[str] = field(default_factory=list)
    done: bool = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def __iter__(self) -> Iterator[Any]:
        try:
            for chunk in self.stream:
                self._hear(chunk)
                yield chunk
        except GeneratorExit:
            self._end()
            raise
        self._end()

    async def __aiter__(self) -> AsyncIterator[Any]:
        try:
            async for chunk in self.stream:
                self._hear(chunk)
                yield chunk
        except (GeneratorExit, asyncio.CancelledError):
            await asyncio.to_thread(self._end)
            raise
        await asyncio.to_thread(self._end)

    def __enter__(self) -> _Stream:
        self.stream.__enter__()
        return self

    def __exit__(self, kind: Any, *raised: Any) -> Any:
        if kind is None:
            self._end()
        return self.stream.__exit__(kind, *raised)

    async def __aenter__(self) -> _Stream:
        await self.stream.__aenter__()
        return self

    async def __aexit__(self, kind: Any, *raised: Any) -> Any:
        if kind is None:
            await asyncio.to_thread(self._end)
        return await self.stream.__aexit__(kind, *raised)

    def _hear(self, chunk: Any) -> None:
        self.said.append(self.api.delta(chunk) or "")

    def _end(self) -> None:
        if not self.done:
            self.done = True
            self.keep("".join(self.said))


def _said_by_user(entry: Any) -> bool:
    if not isinstance(entry, Mapping) or entry.get("role") != "user":
        return False
    return bool(_text(entry.get("content")).strip())


def _text(content: Any) -> str:
    """Return the text of a content, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    results: list[str] = []
    for part in content:
        get = part.get if isinstance(part, Mapping) else partial(getattr, part)
        if get("type", None) in _TEXTS:
            results.append(str(get("text", "")))
    return "\n".join(results)
