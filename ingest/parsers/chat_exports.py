"""Conversations as ChatGPT and Claude export them: of a tree, the branch that was shown last.

An edited question or a regenerated answer leaves a branch behind: it is counted and left out, as
are system prompts, tools and thoughts, which no participant said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ingest.candidates import MAX_NAME_CHARS, ParsedDocument, ParseFinding
from ingest.dates import read_json_time
from ingest.parsers.file_names import session_name
from ingest.parsers.transcript import ParsedConversation
from ingest.reasons import SkippedPart

Json = Mapping[str, Any]

_CHATGPT_ROLES: Final = ("user", "assistant")
_CHATGPT_TEXTS: Final = ("text", "multimodal_text")
_CLAUDE_ROLES: Final = ("human", "assistant")
# The parent of a first message.
_CLAUDE_ROOT: Final = "00000000-0000-4000-8000-000000000000"


@dataclass(frozen=True, slots=True)
class _Node:
    """A message in its tree; ``message`` is None where the node holds none."""

    where: str
    message: Json | None
    parent: str | None
    time: int | None


def is_chatgpt(value: Any) -> bool:
    """Return True for ChatGPT's ``conversations.json``, or one conversation of it."""
    return any(_is_tree(each.get("mapping")) for each in _conversations(value))


def _is_tree(mapping: Any) -> bool:
    """Return True for nodes that hold a message, or for none at all."""
    return isinstance(mapping, dict) and (
        not mapping
        or any(isinstance(node, dict) and "message" in node for node in mapping.values())
    )


def is_claude(value: Any) -> bool:
    """Return True for Claude's ``conversations.json``, or one conversation of it."""
    return any(isinstance(each.get("chat_messages"), list) for each in _conversations(value))


def parse_chatgpt(value: Any, path: str, findings: tuple[ParseFinding, ...] = ()) -> ParsedDocument:
    """Return each shown message as an episode; a conversation is a session."""
    turns = ParsedConversation(path, list(findings))
    for where, conversation, session in _sessions(value, turns, "mapping", dict):
        nodes = _chatgpt_nodes(conversation["mapping"], f"{where}/mapping", turns)
        shown = _shown(nodes, conversation.get("current_node"), where, turns)
        _tell_left_out(nodes, shown, where, turns, lambda node: bool(_chatgpt_words(node)[0]))
        started = read_json_time(conversation.get("create_time"))
        for name in shown:
            node = nodes[name]
            words, skipped = _chatgpt_words(node)
            if skipped:
                turns.findings.append(
                    ParseFinding(SkippedPart.CONTENT_PART_SKIPPED, node.where, count=skipped)
                )
            if words:
                _say(turns, node, words, conversation, session, started, name, "title")
    return turns.document("chat")


def parse_claude(value: Any, path: str, findings: tuple[ParseFinding, ...] = ()) -> ParsedDocument:
    """Return each shown message as an episode; a conversation is a session."""
    turns = ParsedConversation(path, list(findings))
    for where, conversation, session in _sessions(value, turns, "chat_messages", list):
        nodes = _claude_nodes(conversation["chat_messages"], f"{where}/chat_messages", turns)
        tree = any(node.parent in nodes for node in nodes.values())
        tip = conversation.get("current_leaf_message_uuid")
        shown = _shown(nodes, tip, where, turns) if tree else list(nodes)
        _tell_left_out(nodes, shown, where, turns, lambda node: bool(_claude_words(node)[0]))
        started = read_json_time(conversation.get("created_at"))
        for name in shown:
            node = nodes[name]
            words, skipped = _claude_words(node)
            if skipped:
                turns.findings.append(
                    ParseFinding(SkippedPart.CONTENT_PART_SKIPPED, node.where, count=skipped)
                )
            if words:
                _say(turns, node, words, conversation, session, started, name, "name")
    return turns.document("chat")


def _conversations(value: Any) -> list[Json]:
    given = value if isinstance(value, list) else [value]
    return [each for each in given if isinstance(each, dict)]


def _sessions(
    value: Any, turns: ParsedConversation, member: str, kind: type
) -> Iterator[tuple[str, Json, str]]:
    """Yield each conversation with its pointer and its session."""
    given = value if isinstance(value, list) else [value]
    seen: set[str] = set()
    for place, each in enumerate(given):
        where = f"/{place}" if isinstance(value, list) else ""
        if not isinstance(each, dict) or not isinstance(each.get(member), kind):
            turns.findings.append(ParseFinding(SkippedPart.MESSAGE_INVALID, where or "#"))
            continue
        names = (each.get(name) for name in ("conversation_id", "id", "uuid"))
        session = next((name for name in map(_name, names) if name), None)
        if session is None or session in seen:
            session = f"{session or session_name(turns.path)}#{place + 1}"
        seen.add(session)
        yield where, each, session


def _shown(
    nodes: Mapping[str, _Node], tip: Any, where: str, turns: ParsedConversation
) -> list[str]:
    """Return the ids of the branch that ends in ``tip``, or else in the latest message, from its
    root.
    """
    if not isinstance(tip, str) or tip not in nodes:
        parents = {node.parent for node in nodes.values()}
        leaves = [name for name in nodes if name not in parents] or list(nodes)
        said = [name for name in leaves if nodes[name].message is not None] or leaves
        # Of one moment the last one of the file.
        order = {name: place for place, name in enumerate(nodes)}
        tip = max(said, key=lambda name: (nodes[name].time or 0, order[name]), default=None)
    branch: dict[str, None] = {}
    while tip is not None:
        if tip in branch or tip not in nodes:
            turns.findings.append(ParseFinding(SkippedPart.BRANCH_BROKEN, where or "#"))
            break
        branch[tip] = None
        tip = nodes[tip].parent
    return list(branch)[::-1]


def _tell_left_out(
    nodes: Mapping[str, _Node],
    shown: Sequence[str],
    where: str,
    turns: ParsedConversation,
    speaks: Callable[[_Node], bool],
) -> None:
    kept = set(shown)
    count = sum(name not in kept and speaks(node) for name, node in nodes.items())
    if count:
        turns.findings.append(ParseFinding(SkippedPart.BRANCH_LEFT_OUT, where or "#", count=count))


def _say(
    turns: ParsedConversation,
    node: _Node,
    words: str,
    conversation: Json,
    session: str,
    started: int | None,
    name: str,
    title: str,
) -> None:
    message = node.message or {}
    author = message.get("author")
    speaker = author["role"] if isinstance(author, dict) else message["sender"]
    told = _name(conversation.get(title))
    turns.say(
        words,
        node.where,
        speaker=speaker,
        session=session,
        conversation=session,
        event_time=started if node.time is None else node.time,
        turn_id=name[:MAX_NAME_CHARS],
        attributes={"title": told[:200]} if told else None,
    )


def _chatgpt_nodes(mapping: Json, pointer: str, turns: ParsedConversation) -> dict[str, _Node]:
    nodes: dict[str, _Node] = {}
    for name, given in mapping.items():
        where = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')[:200]}"
        if not isinstance(given, dict):
            turns.findings.append(ParseFinding(SkippedPart.MESSAGE_INVALID, where))
            continue
        message = given.get("message")
        message = message if isinstance(message, dict) else None
        parent = given.get("parent")
        parent = parent if isinstance(parent, str) else None
        time = read_json_time((message or {}).get("create_time"))
        nodes[name] = _Node(where, message, parent, time)
    return nodes


def _chatgpt_words(node: _Node) -> tuple[str, int]:
    """Return the text of a person or the model in a node, and how many parts are no text."""
    message = node.message or {}
    author, content = message.get("author"), message.get("content")
    if not isinstance(author, dict) or author.get("role") not in _CHATGPT_ROLES:
        return "", 0
    if not isinstance(content, dict) or content.get("content_type") not in _CHATGPT_TEXTS:
        return "", 0
    about = message.get("metadata")
    about = about if isinstance(about, dict) else {}
    hidden = about.get("is_visually_hidden_from_conversation") is True
    if hidden or message.get("weight") == 0 or message.get("recipient") not in (None, "all"):
        return "", 0
    parts = content.get("parts")
    parts = parts if isinstance(parts, list) else []
    # A spoken part has its transcript in another member.
    texts = [each.get("text") if isinstance(each, dict) else each for each in parts]
    said = [text for text in texts if isinstance(text, str)]
    return "\n".join(said).strip(), len(texts) - len(said)


def _claude_nodes(
    messages: Sequence[Any], pointer: str, turns: ParsedConversation
) -> dict[str, _Node]:
    nodes: dict[str, _Node] = {}
    for place, given in enumerate(messages):
        where = f"{pointer}/{place}"
        if not isinstance(given, dict) or given.get("sender") not in _CLAUDE_ROLES:
            turns.findings.append(ParseFinding(SkippedPart.MESSAGE_INVALID, where))
            continue
        name = _name(given.get("uuid")) or f"{place}"
        if name in nodes:
            turns.findings.append(ParseFinding(SkippedPart.MESSAGE_REPEATED, where))
            continue
        parent = given.get("parent_message_uuid")
        parent = parent if isinstance(parent, str) and parent != _CLAUDE_ROOT else None
        nodes[name] = _Node(where, given, parent, read_json_time(given.get("created_at")))
    return nodes


def _claude_words(node: _Node) -> tuple[str, int]:
    """Return the text and the attachments of a message, and how many of its blocks are no text."""
    message = node.message or {}
    blocks = _objects(message.get("content"))
    texts = [each.get("text") for each in blocks if each.get("type") == "text"]
    said = [text for text in texts if isinstance(text, str) and text.strip()]
    # The text repeats the blocks, with placeholders for what is no text.
    if not said and isinstance(message.get("text"), str):
        said = [message["text"]]
    for each in _objects(message.get("attachments")):
        if isinstance(pasted := each.get("extracted_content"), str) and pasted.strip():
            label = _name(each.get("file_name")) or "pasted text"
            said.append(f"[{label[:200]}]\n{pasted}")
    for each in _objects(message.get("files")):
        if attached := _name(each.get("file_name")):
            said.append(f"[file: {attached[:200]}]")
    return "\n".join(said).strip(), sum(each.get("type") != "text" for each in blocks)


def _objects(value: Any) -> list[Json]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _name(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    return " ".join(value.split())[:MAX_NAME_CHARS] or None
