"""Conversations as JSON: our transcript shape, a bare list of messages, and the OpenAI shapes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ingest.candidates import MAX_NAME_CHARS, ParsedDocument, ParseFinding
from ingest.dates import read_json_time
from ingest.parsers.file_names import conversation_name, session_name
from ingest.parsers.transcript import ParsedConversation
from ingest.reasons import SkippedPart

_WHO = ("speaker", "name", "role", "author", "sender", "from", "user", "username")
_WHAT = ("content", "text", "message", "body", "value")
_WHEN = ("timestamp", "time", "date", "datetime", "created_at", "create_time", "created", "ts")
_ID = ("id", "message_id", "uuid", "turn_id", "dia_id", "item_id")
_LISTS = ("messages", "turns", "conversation", "dialogue", "utterances", "input", "data")
_MAX_TOOL_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class _Chat:
    """A list of messages with the fields about it as a whole."""

    messages: Sequence[Any]
    pointer: str
    about: Mapping[str, Any]


def find_chats(value: Any) -> list[_Chat]:
    """Return the conversations in a JSON value; empty when it is something else."""
    if isinstance(value, list):
        if _are_messages(value):
            return [_Chat(value, "", {})]
        chats = [
            chat
            for place, each in enumerate(value)
            if isinstance(each, dict)
            for chat in _chat_of(each, f"/{place}")
        ]
        return chats if chats and len(chats) == len(value) else []
    if not isinstance(value, dict):
        return []
    found = list(_chat_of(value, ""))
    if found:
        return found
    inner = value.get("conversations", value.get("sessions"))
    if not isinstance(inner, list):
        return []
    name = "conversations" if "conversations" in value else "sessions"
    return [replace(chat, pointer=f"/{name}{chat.pointer}") for chat in find_chats(inner)]


def parse_chats(
    chats: Sequence[_Chat], path: str, findings: tuple[ParseFinding, ...] = ()
) -> ParsedDocument:
    """Return each message as an episode in order; a message without text is reported and left
    out.
    """
    turns = ParsedConversation(path, list(findings))
    for place, chat in enumerate(chats, start=1):
        _read_chat(turns, chat, place if len(chats) > 1 else None)
    return turns.document("chat")


def _chat_of(value: Mapping[str, Any], pointer: str) -> Iterator[_Chat]:
    choices = value.get("choices")
    if isinstance(choices, list) and choices:
        answers = [each.get("message") for each in choices if isinstance(each, dict)]
        if _are_messages(answers):
            yield _Chat(answers, f"{pointer}/choices", value)
            return
    for name in _LISTS:
        messages = value.get(name)
        if isinstance(messages, list) and _are_messages(messages):
            yield _Chat(messages, f"{pointer}/{name}", value)
            return
    # ``{"messages": []}`` is a conversation in which nothing was said.
    if value.get("messages") == []:
        yield _Chat([], f"{pointer}/messages", value)


def _are_messages(values: Sequence[Any]) -> bool:
    """Return True when at least half are messages: a broken one does not exclude the others."""
    good = sum(1 for each in values if _is_message(each))
    return good > 0 and good * 2 >= len(values)


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict) or _speaker(value) is None:
        return False
    return any(name in value for name in _WHAT) or "tool_calls" in value


def _speaker(message: Mapping[str, Any]) -> str | None:
    for name in _WHO:
        given = message.get(name)
        if isinstance(given, dict):
            given = given.get("name") or given.get("role")
        if isinstance(given, str) and given.strip():
            return " ".join(given.split())[:MAX_NAME_CHARS]
    return None


def _read_chat(turns: ParsedConversation, chat: _Chat, place: int | None) -> None:
    about = chat.about
    base = session_name(turns.path)
    conversation = label_of(about, ("conversation_id", "thread_id", "channel_id", "chat_id"))
    session = label_of(about, ("session_id", "session", "id"))
    if session is None:
        session = f"{conversation or base}#{place}" if place else conversation or base
    conversation = conversation or conversation_name(session)
    started = _time(about, turns, chat.pointer)
    for index, message in enumerate(chat.messages):
        where = f"{chat.pointer}/{index}"
        if not _is_message(message):
            turns.findings.append(ParseFinding(SkippedPart.MESSAGE_INVALID, where))
            continue
        text = _words(message, where, turns)
        own = _time(message, turns, where)
        speaker = _speaker(message) or "unknown"
        role = message.get("role")
        named = isinstance(role, str) and role.strip() and role != speaker
        turns.say(
            text,
            where,
            speaker=speaker,
            session=session,
            conversation=conversation,
            event_time=started if own is None else own,
            turn_id=label_of(message, _ID),
            attributes={"role": str(role)[:100]} if named else None,
        )


def label_of(values: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """Return the first of some names that has a word or a number."""
    for name in names:
        given = values.get(name)
        if isinstance(given, str) and given.strip():
            return " ".join(given.split())[:MAX_NAME_CHARS]
        if isinstance(given, int) and not isinstance(given, bool):
            return str(given)
    return None


def _time(values: Mapping[str, Any], turns: ParsedConversation, where: str) -> int | None:
    for name in _WHEN:
        given = values.get(name)
        if given is None:
            continue
        moment = read_json_time(given)
        if moment is not None:
            return moment
        turns.findings.append(ParseFinding(SkippedPart.DATE_NOT_UNDERSTOOD, f"{where}/{name}"))
    return None


def _words(message: Mapping[str, Any], where: str, turns: ParsedConversation) -> str:
    """Return the text of a message: text, text parts of the content, and the called tools."""
    parts: list[str] = []
    for name in _WHAT:
        if message.get(name) is not None:
            parts.extend(_texts(message[name], f"{where}/{name}", turns))
            break
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            arguments = function.get("arguments")
            given = arguments if isinstance(arguments, str) else json.dumps(arguments)
            parts.append(f"[calls {function['name'][:200]}({given[:_MAX_TOOL_CHARS]})]")
    return "\n".join(part.strip() for part in parts if part.strip())


def _texts(content: Any, where: str, turns: ParsedConversation) -> Iterator[str]:
    if isinstance(content, str):
        yield content
        return
    for place, part in enumerate(content if isinstance(content, list) else [content]):
        text = part
        if isinstance(part, dict):
            text = part.get("text", part.get("refusal"))
            # The Assistants interface wraps the words once more.
            text = text.get("value") if isinstance(text, dict) else text
        if isinstance(text, str):
            yield text
        else:
            turns.findings.append(
                ParseFinding(SkippedPart.CONTENT_PART_SKIPPED, f"{where}/{place}")
            )
