"""Types of settings, and their validation."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

# A setting of the whole process, which an orchestrator's own file may not set.
GLOBAL_ONLY: dict[str, Any] = {"global_only": True}

_PROVIDER = re.compile(r"litellm/\S+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def embedding_provider(name: str) -> str:
    if name in {"local", "fake", "none"} or _PROVIDER.fullmatch(name):
        return name
    raise ValueError("must be one of local, none, fake or litellm/<model>")


def model_provider(name: str) -> str:
    if name == "none" or _PROVIDER.fullmatch(name):
        return name
    raise ValueError("must be none or litellm/<model>")


def _api_base(url: str) -> str:
    if not url:
        return url
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("must be an http or https URL, or empty")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must be a URL without user and password; put a key into a variable")
    return url


def _server_url(url: str) -> str:
    if not url:
        return url
    parts = urlsplit(url)
    if parts.scheme not in {"postgresql", "postgresql+psycopg"}:
        raise ValueError("must be a URL like postgresql+psycopg://user@host/database, or empty")
    if parts.password is not None or "password" in parse_qs(parts.query):
        raise ValueError("must be a URL without a password; use PGPASSFILE or PGPASSWORD")
    return url


def _placement(entries: tuple[str, ...]) -> tuple[str, ...]:
    for entry in entries:
        pattern, sign, url = entry.partition("=")
        if not pattern or not sign:
            raise ValueError("each entry must be pattern=url, with an empty url for a file")
        _server_url(url)
    return entries


def _key_source(source: str) -> str:
    if source and not source.startswith(("/", "~/")) and not _VARIABLE.fullmatch(source):
        raise ValueError("must be the name of a variable, the absolute path of a file, or empty")
    return source


def _absolute(paths: tuple[str, ...]) -> tuple[str, ...]:
    if not all(path.startswith("/") and "\0" not in path for path in paths):
        raise ValueError("must be absolute paths")
    return paths


def _cron(expression: str) -> str:
    if expression:
        from cronsim import CronSim, CronSimError

        try:
            CronSim(expression, datetime(2000, 1, 1, tzinfo=UTC))
        except CronSimError as error:
            raise ValueError("must be a cron expression of five fields, or empty") from error
    return expression


def _time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError("must be the name of a time zone, like Europe/Berlin") from error
    return name


def _entity_providers(names: tuple[str, ...]) -> tuple[str, ...]:
    providers = ("regex", "spacy", "llm")
    if not set(names) <= set(providers) or len(set(names)) != len(names):
        raise ValueError("may list each of regex, spacy, llm at most once")
    return names


def _fast_providers(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names or "llm" in names:
        raise ValueError("must be regex, spacy or both: a write never waits for a language model")
    return _entity_providers(names)


def _nicknames(pairs: tuple[str, ...]) -> tuple[str, ...]:
    if not all(pair.count("=") == 1 and all(map(str.strip, pair.split("="))) for pair in pairs):
        raise ValueError("each entry must be nickname=full name")
    return pairs


def no_crossing(crosses: bool) -> bool:
    if crosses:
        raise ValueError("must be false: recall across orchestrators is not possible")
    return crosses


Factor = Annotated[float, Field(ge=0.0, le=1.0)]
ServerUrl = Annotated[str, AfterValidator(_server_url)]
Placement = Annotated[tuple[str, ...], AfterValidator(_placement)]
ApiBase = Annotated[str, AfterValidator(_api_base)]
KeySource = Annotated[str, AfterValidator(_key_source)]
Cron = Annotated[str, AfterValidator(_cron)]
TimeZone = Annotated[str, AfterValidator(_time_zone)]
ProviderNames = Annotated[tuple[str, ...], AfterValidator(_entity_providers)]
FastProviderNames = Annotated[tuple[str, ...], AfterValidator(_fast_providers)]
Nicknames = Annotated[tuple[str, ...], AfterValidator(_nicknames)]
Folders = Annotated[tuple[str, ...], AfterValidator(_absolute)]


class SettingsGroup(BaseModel):
    """Base of all groups: immutable, no unknown key, no coercion between types."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True
    )


class ModelGroup(SettingsGroup):
    """The settings of a model: its provider, address and key."""

    provider: Annotated[str, AfterValidator(model_provider)] = "none"
    api_base: ApiBase = Field(
        default="", description="URL of the provider's API; empty: the provider's default."
    )
    api_key_from: KeySource = Field(
        default="",
        max_length=4_096,
        description="Environment variable with the key, or absolute path of a file with it, which"
        " is read at every call; empty: the provider's default.",
    )
