"""Settings of the webhook."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from memgraph.config.fields import SettingsGroup, list_to_tuple

TOPICS = ("memory.contradiction_found", "ingest.file_rejected", "job.failed")


def _target(url: str) -> str:
    if not url:
        return url
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None:
        raise ValueError("an address without user and password")
    if parts.hostname and (
        parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(parts.hostname))
    ):
        _ = parts.port  # raises ValueError
        return url
    raise ValueError("an https address, or an http one of this machine, or empty")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _topics(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names or not set(names) <= set(TOPICS):
        raise ValueError(f"some of {', '.join(TOPICS)}")
    return names


class WebhookSettings(SettingsGroup):
    url: Annotated[str, AfterValidator(_target)] = Field(
        default="",
        max_length=2_000,
        description="Where events are posted: an https address, or an http one of this machine;"
        " empty: nowhere.",
    )
    secret_file: str = Field(
        default="",
        max_length=4_096,
        description="File with the secrets that sign, one a line, the newest first; read at every"
        " delivery; for its owner alone.",
    )
    topics: Annotated[tuple[str, ...], BeforeValidator(list_to_tuple), AfterValidator(_topics)] = (
        Field(default=TOPICS, description="What is posted.")
    )
    timeout_s: float = Field(
        default=5.0, gt=0.0, le=60.0, description="How long the receiver may take, seconds."
    )

    @model_validator(mode="after")
    def _is_signed(self) -> WebhookSettings:
        if self.url and not self.secret_file:
            raise ValueError("secret_file: is needed when there is a url")
        return self
