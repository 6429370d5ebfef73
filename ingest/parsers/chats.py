"""Parse conversations in JSON: lists of messages, and exports of ChatGPT, Claude and Slack."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from ingest.candidates import Origin, ParsedDocument
from ingest.parsers.file_names import conversation_name, session_name, title_of
from ingest.parsers.transcript import Conversation
from ingest.reasons import SkippedPart
from memgraph.model.values import MAX_NAME_CHARS
from memgraph.text.dates import settled

Json = Mapping[str, Any]

_SPEAKER_FIELDS = ("speaker", "name", "role", "author", "sender", "from", "user", "username")
_TEXT_FIELDS = ("content", "text", "message", "body", "value")
_TIME_FIELDS = (
    *("timestamp", "time", "date", "datetime"),
    *("created_at", "create_time", "created", "ts"),
)
_ID_FIELDS = ("id", "message_id", "uuid", "turn_id", "dia_id", "item_id")
_ABOUT = (*_SPEAKER_FIELDS, *_TIME_FIELDS, *_ID_FIELDS)
_LISTS = ("messages", "turns", "conversation", "dialogue", "utterances")
# Lists of these names may contain anything else.
_ANY_LISTS = ("input", "data")
_MAX_TOOL_CHARS = 4_000

_CHATGPT_ROLES: Final = ("user", "assistant")
_CHATGPT_TEXTS: Final = ("text", "multimodal_text")
_CLAUDE_ROLES: Final = ("human", "assistant")
# The parent of a conversation's first message.
_CLAUDE_ROOT: Final = "00000000-0000-4000-8000-000000000000"

_SLACK_TIME = re.compile(r"\d{9,11}\.\d{1,9}")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_SLACK_MARK = re.compile(r"<([^<>\n]{1,2000})>")
_SLACK_SPOKEN: Final = frozenset(
    (
        None,
        "bot_message",
        "me_message",
        "file_comment",
        "file_share",
        "thread_broadcast",
        "reply_broadcast",
    )
)


def _name(value: Any) -> str | None:
    """Return a text as one line of limited length; None if it is not text, or blank."""
    if not isinstance(value, str):
        return None
    return " ".join(value.split())[:MAX_NAME_CHARS] or None


def _label(values: Any, *names: str, numbers: bool = False) -> str | None:
    """Return the first of the named fields of an object whose value is text, or an integer."""
    for value in map(_object(values).get, names):
        if numbers and isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if label := _name(value):
            return label
    return None


def _objects(value: Any) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _are_mostly(items: Sequence[Any], is_message: Callable[[Any], bool]) -> bool:
    """Return True when at least half are messages: a few broken ones are tolerated."""
    count = sum(is_message(item) for item in items)
    return count > 0 and count * 2 >= len(items)


# Lists of messages: our own shape, a bare list, and the shapes of OpenAI's APIs.


@dataclass(frozen=True, slots=True)
class _Chat:
    """A list of messages with the fields about it as a whole."""

    messages: Sequence[Any]
    pointer: str
    about: Json


def find_chats(value: Any) -> list[_Chat]:
    """Return the conversations in a JSON value; an empty list if it contains none."""
    if isinstance(value, list):
        if _are_mostly(value, _is_message):
            return [_Chat(value, "", {})]
        chats = [
            chat
            for place, item in enumerate(value)
            if isinstance(item, dict)
            for chat in _chat_of(item, f"/{place}")
        ]
        return chats if chats and len(chats) == len(value) else []
    if not isinstance(value, dict):
        return []
    if own_chats := list(_chat_of(value, "")):
        return own_chats
    name = "conversations" if "conversations" in value else "sessions"
    inner = value.get(name)
    if not isinstance(inner, list):
        return []
    return [replace(chat, pointer=f"/{name}{chat.pointer}") for chat in find_chats(inner)]


def parse_chats(document: ParsedDocument, chats: Sequence[_Chat]) -> None:
    """Add the messages as episodes in order; those without anything said are reported."""
    document.format = "chat"
    turns = Conversation(document)
    for place, chat in enumerate(chats, start=1):
        _read_chat(turns, chat, place if len(chats) > 1 else None)


def _chat_of(value: Json, pointer: str) -> Iterator[_Chat]:
    choices = value.get("choices")
    if isinstance(choices, list) and choices:
        answers = [choice.get("message") for choice in choices if isinstance(choice, dict)]
        if _are_mostly(answers, _is_message):
            yield _Chat(answers, f"{pointer}/choices", value)
            return
    for name in (*_LISTS, *_ANY_LISTS):
        messages = value.get(name)
        if not isinstance(messages, list):
            continue
        has_one = name in _LISTS and any(map(_is_message, messages))
        if has_one or _are_mostly(messages, _is_message):
            yield _Chat(messages, f"{pointer}/{name}", value)
            return
    # ``{"messages": []}`` is an empty conversation.
    if value.get("messages") == []:
        yield _Chat([], f"{pointer}/messages", value)


def _is_message(value: Any) -> bool:
    return _speaker(value) is not None and _has_text(value)


def _has_text(value: Any) -> bool:
    return isinstance(value, dict) and not value.keys().isdisjoint((*_TEXT_FIELDS, "tool_calls"))


def _speaker(message: Any) -> str | None:
    for name in _SPEAKER_FIELDS if isinstance(message, dict) else ():
        author = message.get(name)
        if isinstance(author, dict):
            author = author.get("name") or author.get("role")
        if label := _name(author):
            return label
    return None


def _read_chat(turns: Conversation, chat: _Chat, place: int | None) -> None:
    about = chat.about
    base = session_name(turns.document.path)
    ids = ("conversation_id", "thread_id", "channel_id", "chat_id")
    conversation = _label(about, *ids, numbers=True)
    session = _label(about, "session_id", "session", "id", numbers=True)
    if session is None:
        session = f"{conversation or base}#{place}" if place else conversation or base
    conversation = conversation or conversation_name(session)
    started = _time(about, turns.document, chat.pointer)
    for index, message in enumerate(chat.messages):
        where = f"{chat.pointer}/{index}"
        if isinstance(message, str):
            message = {"text": message}
        elif isinstance(message, dict) and not _has_text(message) and "type" not in message:
            # A mail with a subject alone, for instance; other types of items say what they are.
            plain = {name: item for name, item in message.items() if isinstance(item, str)}
            said = [f"{name}: {item}" for name, item in plain.items() if name not in _ABOUT]
            message = {**message, "text": "; ".join(said)} if said else message
        if not _has_text(message):
            problem = "no text" if isinstance(message, dict) else "not an object"
            turns.document.report(SkippedPart.MESSAGE_INVALID, where, {"problems": [problem]})
            continue
        findings = len(turns.document.findings)
        text = _message_text(message, where, turns.document)
        if not text and len(turns.document.findings) > findings:
            # Its parts are reported as left out.
            continue
        speaker = _speaker(message) or "unknown"
        role = message.get("role")
        has_own_role = isinstance(role, str) and role.strip() and role != speaker
        turns.add(
            text,
            where,
            speaker=speaker,
            session=session,
            conversation=conversation,
            event_time=_time(message, turns.document, where, started),
            turn_id=_label(message, *_ID_FIELDS, numbers=True),
            attributes={"role": str(role)[:100]} if has_own_role else None,
        )


def _time(
    values: Json, document: ParsedDocument, where: str, started: int | None = None
) -> int | None:
    """Return the time of a message, or else when its conversation began; report unread dates."""
    fields = {name: values[name] for name in _TIME_FIELDS if values.get(name) is not None}
    times = {name: document.json_times(value) for name, value in fields.items()}
    time = settled(times.values(), started)
    for name, readings in times.items():
        if len(readings) == 1:
            break
        if time is None or not readings:
            document.report_date(fields[name], f"{where}/{name}")
    return time


def _message_text(message: Json, where: str, document: ParsedDocument) -> str:
    """Return the text of a message: its text or text parts, and its tool calls."""
    parts: list[str] = []
    for name in _TEXT_FIELDS:
        if message.get(name) is not None:
            parts.extend(_texts(message[name], f"{where}/{name}", document))
            break
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            arguments = function.get("arguments")
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            parts.append(f"[calls {function['name'][:200]}({text[:_MAX_TOOL_CHARS]})]")
    return _paragraphs(parts)


def _texts(content: Any, where: str, document: ParsedDocument) -> Iterator[str]:
    if isinstance(content, str):
        yield content
        return
    for place, part in enumerate(content if isinstance(content, list) else [content]):
        text = part
        if isinstance(part, dict):
            text = part.get("text", part.get("refusal"))
            # OpenAI's Assistants API nests the text one level deeper.
            text = text.get("value") if isinstance(text, dict) else text
        if isinstance(text, str):
            yield text
        else:
            document.report(SkippedPart.CONTENT_PART_SKIPPED, f"{where}/{place}")


def _paragraphs(parts: Sequence[str]) -> str:
    return "\n".join(part.strip() for part in parts if part.strip())


# ChatGPT and Claude: a tree of messages. An edited question or a regenerated answer leaves a branch
# behind. The branch that was shown last is read; messages on other branches are counted and left
# out. System prompts, tool calls and reasoning are left out, too.


@dataclass(frozen=True, slots=True)
class _Node:
    """A node in a tree of messages.

    ``text`` is what was shown of it, perhaps nothing; ``skipped`` counts the parts that are not
    text. ``spoken`` is False if the node has no message.
    """

    where: str
    parent: str | None
    time: int | None
    speaker: str = ""
    text: str = ""
    skipped: int = 0
    spoken: bool = True


class _Export(NamedTuple):
    """An export of conversations: the names of their fields, and the reader of their messages."""

    origin: Origin
    messages: str
    kind: type
    read: Callable[[Any, str, ParsedDocument], dict[str, _Node]]
    tip: str
    began: str
    title: str


def is_chatgpt(value: Any) -> bool:
    """Return True for ChatGPT's ``conversations.json``, or one conversation of it."""
    return any(_is_tree(item.get("mapping")) for item in _objects(_as_list(value)))


def is_claude(value: Any) -> bool:
    """Return True for Claude's ``conversations.json``, or one conversation of it."""
    return any(isinstance(item.get("chat_messages"), list) for item in _objects(_as_list(value)))


def parse_export(document: ParsedDocument, value: Any, export: _Export) -> None:
    """Add the messages of the shown branches as episodes; each conversation is a session."""
    document.format, document.origin = "chat", export.origin
    turns, sessions = Conversation(document), set[str]()
    for place, item in enumerate(_as_list(value)):
        where = f"/{place}" if isinstance(value, list) else ""
        messages = _object(item).get(export.messages)
        if not isinstance(messages, export.kind):
            document.report(SkippedPart.MESSAGE_INVALID, where or "#")
            continue
        session = _label(item, "conversation_id", "id", "uuid")
        if session is None or session in sessions:
            session = f"{session or session_name(document.path)}#{place + 1}"
        sessions.add(session)
        nodes = export.read(messages, f"{where}/{export.messages}", document)
        branch = _shown(nodes, item.get(export.tip), where, document)
        omitted = sum(bool(node.text) for name, node in nodes.items() if name not in branch)
        document.report(SkippedPart.BRANCH_LEFT_OUT, where or "#", count=omitted)
        began, title = document.json_time(item.get(export.began)), _name(item.get(export.title))
        for name in branch:
            node = nodes[name]
            document.report(SkippedPart.CONTENT_PART_SKIPPED, node.where, count=node.skipped)
            if node.text:
                turns.add(
                    node.text,
                    node.where,
                    speaker=node.speaker,
                    session=session,
                    conversation=session,
                    event_time=began if node.time is None else node.time,
                    turn_id=name[:MAX_NAME_CHARS],
                    attributes={"title": title[:200]} if title else None,
                )


def _is_tree(mapping: Any) -> bool:
    """Return True for a mapping of message nodes, or an empty one."""
    return isinstance(mapping, dict) and (
        not mapping
        or any(isinstance(node, dict) and "message" in node for node in mapping.values())
    )


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _shown(
    nodes: Mapping[str, _Node], tip: Any, where: str, document: ParsedDocument
) -> Mapping[str, None]:
    """Return the ids of the branch that ends in ``tip``, from its root.

    If ``tip`` is unknown, the branch ends in the latest message. Messages without parents are a
    list, of which all were shown.
    """
    if not any(node.parent in nodes for node in nodes.values()):
        return dict.fromkeys(nodes)
    if not isinstance(tip, str) or tip not in nodes:
        parents = {node.parent for node in nodes.values()}
        leaves = [name for name in nodes if name not in parents] or list(nodes)
        candidates = [name for name in leaves if nodes[name].spoken] or leaves
        # Among messages of the same time, take the last one in the file.
        order = {name: place for place, name in enumerate(nodes)}
        tip = max(candidates, key=lambda name: (nodes[name].time or 0, order[name]), default=None)
    branch: dict[str, None] = {}
    while tip is not None:
        if tip in branch or tip not in nodes:
            document.report(SkippedPart.BRANCH_BROKEN, where or "#")
            break
        branch[tip] = None
        tip = nodes[tip].parent
    return dict.fromkeys(reversed(branch))


def _chatgpt_nodes(mapping: Json, pointer: str, document: ParsedDocument) -> dict[str, _Node]:
    nodes: dict[str, _Node] = {}
    for name, item in mapping.items():
        where = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')[:200]}"
        if not isinstance(item, dict):
            document.report(SkippedPart.MESSAGE_INVALID, where)
            continue
        message = _object(item.get("message"))
        parent = item.get("parent") if isinstance(item.get("parent"), str) else None
        speaker = _object(message.get("author")).get("role")
        text, skipped = _chatgpt_text(message) if speaker in _CHATGPT_ROLES else ("", 0)
        time = document.json_time(message.get("create_time"))
        nodes[name] = _Node(where, parent, time, str(speaker), text, skipped, bool(message))
    return nodes


def _chatgpt_text(message: Json) -> tuple[str, int]:
    """Return the visible text of a message, and the number of its parts that are not text."""
    content, metadata = _object(message.get("content")), _object(message.get("metadata"))
    hidden = metadata.get("is_visually_hidden_from_conversation") is True
    if hidden or message.get("weight") == 0 or message.get("recipient") not in (None, "all"):
        return "", 0
    if content.get("content_type") not in _CHATGPT_TEXTS:
        return "", 0
    parts = content.get("parts")
    # An audio part has its transcript in its field ``text``.
    texts = [
        part.get("text") if isinstance(part, dict) else part
        for part in (parts if isinstance(parts, list) else ())
    ]
    strings = [text for text in texts if isinstance(text, str)]
    return "\n".join(strings).strip(), len(texts) - len(strings)


def _claude_nodes(
    messages: Sequence[Any], pointer: str, document: ParsedDocument
) -> dict[str, _Node]:
    nodes: dict[str, _Node] = {}
    for place, message in enumerate(messages):
        where = f"{pointer}/{place}"
        if not isinstance(message, dict) or message.get("sender") not in _CLAUDE_ROLES:
            document.report(SkippedPart.MESSAGE_INVALID, where)
            continue
        name = _name(message.get("uuid")) or f"{place}"
        if name in nodes:
            document.report(SkippedPart.MESSAGE_REPEATED, where)
            continue
        parent = message.get("parent_message_uuid")
        parent = parent if isinstance(parent, str) and parent != _CLAUDE_ROOT else None
        text, skipped = _claude_text(message)
        time = document.json_time(message.get("created_at"))
        nodes[name] = _Node(where, parent, time, message["sender"], text, skipped)
    return nodes


def _claude_text(message: Json) -> tuple[str, int]:
    """Return the text and attachments of a message, and the number of its non-text blocks."""
    blocks = _objects(message.get("content"))
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    parts = [text for text in texts if isinstance(text, str) and text.strip()]
    # ``text`` repeats the blocks, with placeholders for those that are not text.
    if not parts and isinstance(message.get("text"), str):
        parts = [message["text"]]
    for attachment in _objects(message.get("attachments")):
        if isinstance(pasted := attachment.get("extracted_content"), str) and pasted.strip():
            label = _name(attachment.get("file_name")) or "pasted text"
            parts.append(f"[{label[:200]}]\n{pasted}")
    for file in _objects(message.get("files")):
        if attached := _name(file.get("file_name")):
            parts.append(f"[file: {attached[:200]}]")
    return "\n".join(parts).strip(), sum(block.get("type") != "text" for block in blocks)


CHATGPT: Final = _Export(
    "ChatGPT", "mapping", dict, _chatgpt_nodes, "current_node", "create_time", "title"
)
CLAUDE: Final = _Export(
    "Claude",
    "chat_messages",
    list,
    _claude_nodes,
    "current_leaf_message_uuid",
    "created_at",
    "name",
)


# Slack: ``<channel>/<YYYY-MM-DD>.json`` contains one day of a channel; users.json has the names.


def is_slack_day(value: Any) -> bool:
    """Return True for a day of a channel: at least half of its items have Slack timestamps."""
    return isinstance(value, list) and _are_mostly(
        value, lambda item: isinstance(item, dict) and _slack_time(item) is not None
    )


def is_slack_list(value: Any) -> bool:
    """Return True for users.json or channels.json, which contain no messages."""
    if not isinstance(value, list) or not value:
        return False
    return all(
        isinstance(item, dict)
        and isinstance(item.get("id"), str)
        and (
            isinstance(item.get("profile"), dict)
            or ("creator" in item and isinstance(item.get("members"), list))
        )
        for item in value
    )


def slack_users(value: Any) -> dict[str, str]:
    """Return the display name of each user in users.json, by id."""
    names: dict[str, str] = {}
    for user in _objects(value):
        name = _profile_name(user.get("profile")) or _label(user, "real_name", "name")
        if name and isinstance(user.get("id"), str):
            names.setdefault(user["id"], name)
    return names


def parse_slack_day(
    document: ParsedDocument, value: Sequence[Any], users: Mapping[str, str]
) -> None:
    """Add the messages as episodes.

    A thread is one session across all of its days; the other messages of a day form another one.

    Args:
        users: display names by user id; they take precedence over names in the messages.
    """
    document.format, document.origin = "chat", "Slack"
    turns = Conversation(document)
    people = {
        message["user"]: name
        for message in _objects(value)
        if isinstance(message.get("user"), str)
        and (name := _profile_name(message.get("user_profile")))
    }
    people |= users
    folder, file_name = posixpath.split(document.path)
    channel = posixpath.basename(folder) or "slack"
    day = title_of(document.path) if not _DAY.match(file_name) else file_name[:10]
    document.title = f"{channel} {day}"
    stamps: set[str] = set()
    for place, message in enumerate(value):
        where = f"/{place}"
        stamp = _slack_time(message) if isinstance(message, dict) else None
        if stamp is None:
            document.report(SkippedPart.MESSAGE_INVALID, where)
        elif stamp in stamps:
            document.report(SkippedPart.MESSAGE_REPEATED, where)
        elif message.get("subtype") not in _SLACK_SPOKEN or message.get("hidden") is True:
            document.report(SkippedPart.MESSAGE_HIDDEN, where)
        else:
            stamps.add(stamp)
            thread = message.get("thread_ts")
            threaded = isinstance(thread, str) and _SLACK_TIME.fullmatch(thread) is not None
            turns.add(
                _slack_text(message, people),
                where,
                speaker=_slack_speaker(message, people),
                session=f"{channel}/{thread if threaded else day}",
                conversation=channel,
                event_time=document.json_time(stamp),
                turn_id=stamp,
                # A thread may continue in another day's file, so the store numbers its turns.
                numbered=not threaded,
            )


def _slack_time(message: Json) -> str | None:
    stamp = message.get("ts")
    valid = isinstance(stamp, str) and _SLACK_TIME.fullmatch(stamp) is not None
    return stamp if valid and message.get("type", "message") == "message" else None


def _slack_speaker(message: Json, people: Mapping[str, str]) -> str:
    user = message.get("user")
    if isinstance(user, str) and user in people:
        return people[user]
    bot = _label(message.get("bot_profile"), "name")
    return _label(message, "username") or bot or _label(message, "user", "bot_id") or "unknown"


def _slack_text(message: Json, people: Mapping[str, str]) -> str:
    text = message.get("text")
    parts = [_without_marks(text, people)] if isinstance(text, str) else []
    if not any(part.strip() for part in parts):
        for attachment in _objects(message.get("attachments")):
            text = attachment.get("text") or attachment.get("fallback") or attachment.get("title")
            parts += [_without_marks(text, people)] if isinstance(text, str) else []
    for file in _objects(message.get("files")):
        if label := _label(file, "title", "name"):
            parts.append(f"[file: {label}]")
    return _paragraphs(parts)


def _without_marks(text: str, people: Mapping[str, str]) -> str:
    """Replace Slack's markup: ids by names, links by their text, ``&amp;`` by ``&``."""

    def plain(match: re.Match[str]) -> str:
        target, _, label = match[1].partition("|")
        if target.startswith("@"):
            return "@" + (label or people.get(target[1:], target[1:]))
        if target.startswith("#"):
            return "#" + (label or target[1:])
        if target.startswith("!"):
            return label or "@" + target[1:].partition("^")[0]
        return f"{label} ({target})" if label and label != target else target

    text = _SLACK_MARK.sub(plain, text) if "<" in text else text
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _profile_name(profile: Any) -> str | None:
    return _label(profile, "display_name", "real_name")
