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
        description="A session of the console that was not used for so long ends, minutes.",
    )
    sign_ins_per_minute: int = Field(
        default=10,
        ge=1,
        le=10_000,
        description="How often one address may try to sign in; then it waits. Counted as"
        " `memory.server.requests_per_second`.",
    )


_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+?)\.?(?::[0-9]{0,5})?")
"""RFC 9110, 7.2: a name, or an IPv6 address in brackets, and a port; the root's dot is left out."""


def _networks(texts: tuple[str, ...]) -> tuple[str, ...]:
    for text in texts:
        if ip_network(text).prefixlen == 0:
            raise ValueError(f"{text} matches every address: list only the proxies")
    return texts


def host_name(host: str) -> str | None:
    """Return the name in a Host header, in lower case, without its port; None: it is not valid."""
    match = _HOST.fullmatch(host.lower())
    return None if match is None else match["name"]


def allowed_host(host: str) -> str:
    """Return the name of a host as an operator may write it, such as a bare IPv6 address.

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
        description="Address to listen at; any but a loopback one takes keys and `allowed_hosts`.",
    )
    port: int = Field(
        default=8420,
        ge=0,
        le=65_535,
        description="Port to listen at; 0: a free one.",
    )
    allow_without_key: bool = Field(
        default=False,
        description="Whether anybody on this machine may ask without a key, for everything.",
    )
    allowed_hosts: Hosts = Field(
        default=(),
        description="Names in the Host header that are answered, besides loopback ones.",
    )
    allowed_origins: Names = Field(
        default=(),
        description="Origins of web pages that may ask, such as `https://console.example`.",
    )
    trusted_proxies: Addresses = Field(
        default=(),
        description="Addresses and networks of proxies that are believed who asks through them:"
        " their `X-Forwarded-For` and `X-Forwarded-Proto`.",
    )
    max_body_bytes: int = Field(
        default=4_000_000,
        ge=1_000,
        le=1_000_000_000,
        description="A larger request is refused; an uploaded file has the limit of ingest.",
    )
    request_timeout_s: float = Field(
        default=30.0,
        gt=0.0,
        le=3_600.0,
        description="How long a request may take to arrive, and then to be answered, seconds.",
    )
    head_timeout_s: float = Field(
        default=10.0,
        gt=0.0,
        le=3_600.0,
        description="How long the head of a request may take to arrive, seconds.",
    )
    max_connections: int = Field(
        default=1_000,
        ge=1,
        le=100_000,
        description="Connections that may be open; half of the files that the process may open at"
        " most. A new one takes the place of one that has no request in hand.",
    )
    connections_per_address: int = Field(
        default=256,
        ge=1,
        le=100_000,
        description="Connections of one address, as above; `trusted_proxies` have no such bound.",
    )
    requests_per_second: int = Field(
        default=500,
        ge=1,
        le=1_000_000,
        description="Requests of one key, or of one address without; twice as many in a burst."
        " Servers of one PostgreSQL database count them together.",
    )
    refusals_per_minute: int = Field(
        default=120,
        ge=1,
        le=100_000,
        description="Requests of one key that may be denied or miss; then all wait. Counted as"
        " `requests_per_second`.",
    )
    streams_per_key: int = Field(
        default=8,
        ge=0,
        le=10_000,
        description="Streams of events that one key may have open at a time.",
    )
    threads: int = Field(
        default=16,
        ge=1,
        le=1_000,
        description="Requests that are worked on at the same time.",
    )
    max_waiting: int = Field(
        default=256,
        ge=0,
        le=100_000,
        description="Requests that may wait for a thread; more are refused at once.",
    )
    traces: bool = Field(
        default=False,
        description="Send OpenTelemetry traces, as the `OTEL_*` variables say; extra `otel`.",
    )
    drain_s: float = Field(
        default=20.0,
        ge=0.0,
        le=3_600.0,
        description="How long a server that is told to end works on what it has, seconds.",
    )
    console: ConsoleSettings = Field(default_factory=ConsoleSettings)


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
