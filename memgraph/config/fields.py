"""Types of settings, and their validation."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

# A key that only the process as a whole can have; an orchestrator's own file may not set it.
GLOBAL_ONLY: dict[str, Any] = {"global_only": True}

_PROVIDER = re.compile(r"litellm/\S+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def embedding_provider(name: str) -> str:
    if name in {"local", "onnx", "fake", "none"} or _PROVIDER.fullmatch(name):
        return name
    raise ValueError("one of local, onnx, none, fake or litellm/<model>")


def model_provider(name: str) -> str:
    if name == "none" or _PROVIDER.fullmatch(name):
        return name
    raise ValueError("none or litellm/<model>")


def _api_base(url: str) -> str:
    if not url:
        return url
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("an http or https address, or empty")
    if parts.username is not None or parts.password is not None:
        raise ValueError("an address without user and password; a key belongs into a variable")
    return url


def _server_url(url: str) -> str:
    if not url:
        return url
    parts = urlsplit(url)
    if parts.scheme not in {"postgresql", "postgresql+psycopg"}:
        raise ValueError("an address like postgresql+psycopg://user@host/database, or empty")
    if parts.password is not None or "password" in parse_qs(parts.query):
        raise ValueError("an address without a password; give that by PGPASSFILE or PGPASSWORD")
    return url


def _placement(entries: tuple[str, ...]) -> tuple[str, ...]:
    for entry in entries:
        pattern, sign, url = entry.partition("=")
        if not pattern or not sign:
            raise ValueError("each as pattern=url, with an empty url for a file")
        _server_url(url)
    return entries


def _variable(name: str) -> str:
    if name and not _VARIABLE.fullmatch(name):
        raise ValueError("the name of an environment variable, or empty")
    return name


def _absolute(paths: tuple[str, ...]) -> tuple[str, ...]:
    if not all(path.startswith("/") and "\0" not in path for path in paths):
        raise ValueError("absolute paths")
    return paths


def _cron(expression: str) -> str:
    if expression:
        from cronsim import CronSim, CronSimError

        try:
            CronSim(expression, datetime(2000, 1, 1, tzinfo=UTC))
        except CronSimError as error:
            raise ValueError("five fields of a cron expression, or empty") from error
    return expression


def _time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError("the name of a time zone, like Europe/Berlin") from error
    return name


def _entity_providers(names: tuple[str, ...]) -> tuple[str, ...]:
    providers = ("regex", "spacy", "llm")
    if not set(names) <= set(providers) or len(set(names)) != len(names):
        raise ValueError("each of regex, spacy, llm at most once")
    return names


def _fast_providers(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names or "llm" in names:
        raise ValueError("regex, spacy or both: no language model is asked while a write waits")
    return _entity_providers(names)


def _nicknames(pairs: tuple[str, ...]) -> tuple[str, ...]:
    if not all(pair.count("=") == 1 and all(map(str.strip, pair.split("="))) for pair in pairs):
        raise ValueError("each as nickname=full name")
    return pairs


def list_to_tuple(value: Any) -> Any:
    """TOML has arrays; strict validation wants the tuple itself."""
    return tuple(value) if isinstance(value, list) else value


def no_crossing(crosses: bool) -> bool:
    if crosses:
        raise ValueError("false: recall across orchestrators is not possible")
    return crosses


Factor = Annotated[float, Field(ge=0.0, le=1.0)]
LegWeight = Annotated[float, Field(ge=0.0, le=100.0)]
ServerUrl = Annotated[str, AfterValidator(_server_url)]
Placement = Annotated[tuple[str, ...], BeforeValidator(list_to_tuple), AfterValidator(_placement)]
ApiBase = Annotated[str, AfterValidator(_api_base)]
VariableName = Annotated[str, AfterValidator(_variable)]
Cron = Annotated[str, AfterValidator(_cron)]
TimeZone = Annotated[str, AfterValidator(_time_zone)]
ProviderNames = Annotated[
    tuple[str, ...], BeforeValidator(list_to_tuple), AfterValidator(_entity_providers)
]
FastProviderNames = Annotated[
    tuple[str, ...], BeforeValidator(list_to_tuple), AfterValidator(_fast_providers)
]
Nicknames = Annotated[tuple[str, ...], BeforeValidator(list_to_tuple), AfterValidator(_nicknames)]
Folders = Annotated[tuple[str, ...], BeforeValidator(list_to_tuple), AfterValidator(_absolute)]


class SettingsGroup(BaseModel):
    """Base of all groups: immutable, no unknown key, no coercion between types."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True
    )


class ModelGroup(SettingsGroup):
    """A model: which one, where it is, and how long to wait for it."""

    provider: Annotated[str, AfterValidator(model_provider)] = "none"
    api_base: ApiBase = Field(
        default="", description="Address of the provider; empty: the provider's own."
    )
    api_key_env: VariableName = Field(
        default="", description="Variable that holds the key; empty: the provider's usual one."
    )
    api_key_file: str = Field(
        default="",
        max_length=4_096,
        description="File that holds the key, read at every call; it wins over the variable.",
    )
    timeout_s: float = Field(
        default=60.0, gt=0.0, le=3_600.0, description="Limit of one call, seconds."
    )
    retries: int = Field(
        default=2, ge=0, le=20, description="Further attempts after one that failed."
    )
