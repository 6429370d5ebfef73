"""A day of a channel as Slack exports it: ``<channel>/<YYYY-MM-DD>.json``, names in users.json."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from ingest.candidates import MAX_NAME_CHARS, ParsedDocument, ParseFinding
from ingest.dates import read_json_time
from ingest.decode import decode
from ingest.parsers.file_names import title_of
from ingest.parsers.strict_json import load_json
from ingest.parsers.transcript import ParsedConversation
from ingest.reasons import SkippedPart
from memgraph.errors import IngestRejected

Above = Callable[[str], bytes | None]
"""Returns the content of a file in the parent folder of the current file; None: there is no
such.
"""
USERS: Final = ("users.json", "org_users.json")
"""Files, beside the folders of the channels, that name the users."""

_TS = re.compile(r"\d{9,11}\.\d{1,9}")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MARK = re.compile(r"<([^<>\n]{1,2000})>")
_SPOKEN: Final = frozenset(
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


def no_file_above(_name: str) -> None:
    """Return None, for a file that is read by itself."""


def is_slack_day(value: Any) -> bool:
    """Return True for a day of a channel: most of its items have Slack's time stamps."""
    if not isinstance(value, list):
        return False
    good = sum(isinstance(each, dict) and _ts(each) is not None for each in value)
    return good > 0 and good * 2 >= len(value)


def is_slack_list(value: Any) -> bool:
    """Return True for users.json or channels.json, which contain no messages."""
    if not isinstance(value, list) or not value:
        return False
    return all(
        isinstance(each, dict)
        and isinstance(each.get("id"), str)
        and (
            isinstance(each.get("profile"), dict)
            or ("creator" in each and isinstance(each.get("members"), list))
        )
        for each in value
    )


@lru_cache(maxsize=4)
def _names_in(users: bytes) -> Mapping[str, str]:
    """Return the display name of each user in users.json, by id. All days of an export read the
    same.
    """
    names: dict[str, str] = {}
    try:
        value = load_json(decode(users)[0])
    except IngestRejected:
        return names
    for each in _objects(value):
        name = _shown(each.get("profile")) or _label(each, "real_name", "name")
        if name and isinstance(each.get("id"), str):
            names.setdefault(each["id"], name)
    return names


def parse_slack_day(
    value: Any, path: str, findings: tuple[ParseFinding, ...] = (), above: Above = no_file_above
) -> ParsedDocument:
    """Return each message as an episode. A thread is a session, over all its days; so is the day's
    rest.

    Args:
        above: reads users.json; the messages themselves may name other users.
    """
    turns = ParsedConversation(path, list(findings))
    messages = [each for each in value if isinstance(each, dict)]
    people = {
        each["user"]: name
        for each in messages
        if isinstance(each.get("user"), str) and (name := _shown(each.get("user_profile")))
    }
    for name in USERS:
        people |= _names_in(above(name) or b"[]")
    folder, file_name = posixpath.split(path)
    channel = posixpath.basename(folder) or "slack"
    day = title_of(path) if not _DAY.match(file_name) else file_name[:10]
    seen: set[str] = set()
    for place, message in enumerate(value):
        where = f"/{place}"
        stamp = _ts(message) if isinstance(message, dict) else None
        if stamp is None:
            turns.findings.append(ParseFinding(SkippedPart.MESSAGE_INVALID, where))
        elif stamp in seen:
            turns.findings.append(ParseFinding(SkippedPart.MESSAGE_REPEATED, where))
        elif message.get("subtype") not in _SPOKEN or message.get("hidden") is True:
            turns.findings.append(ParseFinding(SkippedPart.MESSAGE_HIDDEN, where))
        else:
            seen.add(stamp)
            thread = message.get("thread_ts")
            threaded = isinstance(thread, str) and _TS.fullmatch(thread) is not None
            turns.say(
                _words(message, people),
                where,
                speaker=_speaker(message, people),
                session=f"{channel}/{thread if threaded else day}",
                conversation=channel,
                event_time=read_json_time(stamp),
                turn_id=stamp,
                # The replies of another day are in another file.
                numbered=not threaded,
            )
    return turns.document("chat", title=f"{channel} {day}")


def _ts(message: Mapping[str, Any]) -> str | None:
    stamp = message.get("ts")
    good = isinstance(stamp, str) and _TS.fullmatch(stamp) is not None
    return stamp if good and message.get("type", "message") == "message" else None


def _speaker(message: Mapping[str, Any], people: Mapping[str, str]) -> str:
    user = message.get("user")
    if isinstance(user, str) and user in people:
        return people[user]
    profile = message.get("bot_profile")
    bot = _label(profile, "name") if isinstance(profile, dict) else None
    return _label(message, "username") or bot or _label(message, "user", "bot_id") or "unknown"


def _words(message: Mapping[str, Any], people: Mapping[str, str]) -> str:
    text = message.get("text")
    parts = [_plain(text, people)] if isinstance(text, str) else []
    if not any(part.strip() for part in parts):
        for each in _objects(message.get("attachments")):
            words = each.get("text") or each.get("fallback") or each.get("title")
            parts += [_plain(words, people)] if isinstance(words, str) else []
    for each in _objects(message.get("files")):
        if label := _label(each, "title", "name"):
            parts.append(f"[file: {label}]")
    return "\n".join(part.strip() for part in parts if part.strip())


def _plain(text: str, people: Mapping[str, str]) -> str:
    """Return text without Slack's markup: names for ids, the text of links, ``&`` for ``&amp;``."""

    def said(match: re.Match[str]) -> str:
        target, _, label = match[1].partition("|")
        if target.startswith("@"):
            return "@" + (label or people.get(target[1:], target[1:]))
        if target.startswith("#"):
            return "#" + (label or target[1:])
        if target.startswith("!"):
            return label or "@" + target[1:].partition("^")[0]
        return f"{label} ({target})" if label and label != target else target

    plain = _MARK.sub(said, text) if "<" in text else text
    return plain.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _shown(profile: Any) -> str | None:
    return _label(profile, "display_name", "real_name") if isinstance(profile, dict) else None


def _label(values: Mapping[str, Any], *names: str) -> str | None:
    for name in names:
        given = values.get(name)
        if isinstance(given, str) and given.strip():
            return " ".join(given.split())[:MAX_NAME_CHARS]
    return None


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
