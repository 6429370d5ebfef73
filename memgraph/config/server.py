"""Settings of the server and the console."""

from __future__ import annotations

import re
from ipaddress import ip_network
from typing import Annotated

from pydantic import AfterValidator, Field

from memgraph.config.fields import SettingsGroup


class ConsoleSettings(SettingsGroup):
    enabled: bool = Field(default=True, description="Whether the console is served, at `/console`.")


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


Names = tuple[str, ...]
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
        description="Maximum size of a request; one with files has the limit of ingest.",
    )
    request_timeout_s: float = Field(
        default=30.0,
        gt=0.0,
        le=3_600.0,
        description="Seconds that a request may take to arrive, then to be answered, and that its"
        " client may read nothing of the answer.",
    )
    drain_s: int = Field(
        default=20,
        ge=0,
        le=3_600,
        description="Seconds that a stopping server continues to work on open requests.",
    )
    console: ConsoleSettings = Field(default_factory=ConsoleSettings)
