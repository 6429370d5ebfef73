"""The options of models reached through litellm, shared by all kinds of models."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

if TYPE_CHECKING:
    from memgraph.config.fields import ModelGroup

LITELLM_PREFIX: Final = "litellm/"


class ModelOptions(TypedDict, total=False):
    """Connection options of a model; each kind of model has its own defaults.

    Attributes:
        timeout_s: the time limit of one request, in seconds, > 0.
        retries: the number of retries after temporary failures, >= 0.
        api_base: the provider's address; None: litellm's default.
        api_key: the key, or the file that contains it, which is read at every call; None: litellm
            reads the provider's environment variable.
    """

    timeout_s: float
    retries: int
    api_base: str | None
    api_key: str | Path | None


def options_of(
    settings: ModelGroup,
    environ: Mapping[str, str] | None,
    timeout_s: float | None = None,
) -> ModelOptions:
    """Return the connection options in the settings of a model.

    Args:
        environ: the environment variables; None: those of the process.
        timeout_s: the time limit of a call; None: that of the kind of model.
    """
    key: str | Path | None = None
    if settings.api_key_from.startswith(("/", "~/")):
        key = Path(settings.api_key_from).expanduser()
    elif settings.api_key_from:
        key = (os.environ if environ is None else environ).get(settings.api_key_from)
    options: ModelOptions = {"api_base": settings.api_base or None, "api_key": key}
    if timeout_s is not None:
        options["timeout_s"] = timeout_s
    return options
