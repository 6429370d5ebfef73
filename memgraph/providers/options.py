"""The options of a model behind litellm, shared by all kinds of models."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol, TypedDict

from memgraph.errors import InvalidConfig

LITELLM_PREFIX: Final = "litellm/"


class ModelOptions(TypedDict, total=False):
    """How a model is reached; each kind of model has its own defaults.

    Attributes:
        timeout_s: seconds for one request, > 0.
        retries: further attempts after one that failed for a passing reason, >= 0.
        api_base: the provider's address where it is not litellm's own.
        api_key: the key, or the file that holds it, read at every call; None leaves it to litellm,
            which reads the provider's variable.
        first_wait_s: pause in seconds before the first retry, 0 to 30; doubles each time.
    """

    timeout_s: float
    retries: int
    api_base: str | None
    api_key: str | Path | None
    first_wait_s: float


class HasModelOptions(Protocol):
    """Settings that say how a model is reached."""

    @property
    def timeout_s(self) -> float: ...

    @property
    def retries(self) -> int: ...

    @property
    def api_base(self) -> str: ...

    @property
    def api_key_env(self) -> str: ...

    @property
    def api_key_file(self) -> str: ...


def options_of(settings: HasModelOptions, environ: Mapping[str, str] | None) -> ModelOptions:
    """Return the options in the settings of a model; without a key the provider finds its own.

    Args:
        environ: the environment, when it is not that of the process.
    """
    key: str | Path | None = None
    if settings.api_key_file:
        key = Path(settings.api_key_file).expanduser()
    elif settings.api_key_env:
        key = (os.environ if environ is None else environ).get(settings.api_key_env)
    return {
        "timeout_s": settings.timeout_s,
        "retries": settings.retries,
        "api_base": settings.api_base or None,
        "api_key": key,
    }


def litellm_model(name: str, kind: str) -> str:
    """Return the model of a configured name ``litellm/<model>``, as litellm names it.

    Args:
        kind: for the message, such as ``completion provider``.

    Raises:
        InvalidConfig: another name.
    """
    if not name.startswith(LITELLM_PREFIX) or len(name) == len(LITELLM_PREFIX):
        raise InvalidConfig(f"Unknown {kind} {name!r}: use litellm/<model>.", key="name")
    return name.removeprefix(LITELLM_PREFIX)
