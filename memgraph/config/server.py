"""Settings of the server and the console."""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from memgraph.config.fields import SettingsGroup, list_to_tuple


class ConsoleSettings(SettingsGroup):
    enabled: bool = Field(default=True, description="Whether the console is served, at `/console`.")
    idle_minutes: int = Field(
        default=30,
        ge=1,
        le=1_440,
        description="Minutes of inactivity after which a session of the console ends.",
    )


_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+?)\.?(?::[0-9]{0,5})?")
"""RFC 9110, 7.2: a name or a bracketed IPv6 address, and a port. A trailing dot is dropped."""


def _networks(texts: tuple[str, ...]) -> tuple[str, ...]:
    for text in texts:
        if ip_network(text).prefixlen == 0:
            raise ValueError(f"{text} matches every address: list only the proxies")
    return texts


def host_name(host: str) -> str | None:
    """Return the name in a Host header, in lower case and without its port; None if invalid."""
    match = _HOST.fullmatch(host.lower())
    return None if match is None else match["name"]


def allowed_host(host: str) -> str:
    """Return the normalised name of a host in a setting, which may be a bare IPv6 address.

    Raises:
        ValueError: it is not the name of a host.
    """
    name = host_name(f"[{host}]" if host.count(":") > 1 and host[:1] != "[" else host)
    if name is None:
        raise ValueError(f"{host!r} is not the name of a host")
    return name


def _hosts(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(allowed_host, texts))


Names = Annotated[tuple[str, ...], BeforeValidator(list_to_tuple)]
Hosts = Annotated[Names, AfterValidator(_hosts)]
Addresses = Annotated[Names, AfterValidator(_networks)]


class ServerSettings(SettingsGroup):
    host: str = Field(
        default="127.0.0.1",
        description="Address to listen on; any but loopback requires keys and `allowed_hosts`.",
    )
    port: int = Field(
        default=8420,
        ge=0,
        le=65_535,
        description="Port to listen on; 0: a free one.",
    )
    allow_without_key: bool = Field(
        default=False,
        description="Whether anybody on this machine has full access without a key.",
    )
    allowed_hosts: Hosts = Field(
        default=(),
        description="Accepted names in the Host header, in addition to loopback ones.",
    )
    allowed_origins: Names = Field(
        default=(),
        description="Origins of web pages that may send requests, e.g. `https://console.example`.",
    )
    trusted_proxies: Addresses = Field(
        default=(),
        description="Addresses and networks of proxies whose `X-Forwarded-For` and"
        " `X-Forwarded-Proto` headers are trusted.",
    )
    max_body_bytes: int = Field(
        default=4_000_000,
        ge=1_000,
        le=1_000_000_000,
        description="Maximum size of a request; uploaded files have the limit of ingest.",
    )
    request_timeout_s: float = Field(
        default=30.0,
        gt=0.0,
        le=3_600.0,
        description="Seconds that a request may take to arrive, and then to be answered.",
    )
    head_timeout_s: float = Field(
        default=10.0,
        gt=0.0,
        le=3_600.0,
        description="Seconds that the head of a request may take to arrive.",
    )
    max_connections: int = Field(
        default=1_000,
        ge=1,
        le=100_000,
        description="Maximum number of open connections, at most half of the process's file limit."
        " A new connection replaces an idle one.",
    )
    connections_per_address: int = Field(
        default=256,
        ge=1,
        le=100_000,
        description="Maximum number of connections per address, except `trusted_proxies`.",
    )
    streams_per_key: int = Field(
        default=8,
        ge=0,
        le=10_000,
        description="Maximum number of open event streams per key.",
    )
    threads: int = Field(
        default=16,
        ge=1,
        le=1_000,
        description="Maximum number of requests processed concurrently.",
    )
    max_waiting: int = Field(
        default=256,
        ge=0,
        le=100_000,
        description="Requests that may wait for a thread; more are refused immediately.",
    )
    drain_s: float = Field(
        default=20.0,
        ge=0.0,
        le=3_600.0,
        description="Seconds that a stopping server continues to work on open requests.",
    )
    console: ConsoleSettings = Field(default_factory=ConsoleSettings)


TOPICS = ("memory.contradiction_found", "ingest.file_rejected", "job.failed")


def _target(url: str) -> str:
    if not url:
        return url
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not contain a user or a password")
    if parts.hostname and (
        parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(parts.hostname))
    ):
        _ = parts.port  # raises ValueError
        return url
    raise ValueError("must be an https URL, an http URL of this machine, or empty")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _topics(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names or not set(names) <= set(TOPICS):
        raise ValueError(f"must be some of: {', '.join(TOPICS)}")
    return names


class WebhookSettings(SettingsGroup):
    url: Annotated[str, AfterValidator(_target)] = Field(
        default="",
        max_length=2_000,
        description="URL to which events are posted: https, or http on this machine; empty: none.",
    )
    secret_file: str = Field(
        default="",
        max_length=4_096,
        description="File with the signing secrets, one per line, newest first; read at every"
        " delivery; only its owner may read it.",
    )
    topics: Annotated[tuple[str, ...], BeforeValidator(list_to_tuple), AfterValidator(_topics)] = (
        Field(default=TOPICS, description="Topics to post.")
    )
    timeout_s: float = Field(
        default=5.0, gt=0.0, le=60.0, description="Seconds that the receiver may take."
    )

    @model_validator(mode="after")
    def _is_signed(self) -> WebhookSettings:
        if self.url and not self.secret_file:
            raise ValueError("secret_file: is required with a url")
        return self
