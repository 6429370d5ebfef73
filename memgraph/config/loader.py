"""Load settings from files, environment and code, and keep the origin of each value.

Precedence: code, environment, the orchestrator's file, the global file, defaults. For the location
of an orchestrator, its own file comes first, then ``placement``. Every layer is validated when it
is added, so an error names its layer, and an invalid value fails even if another layer overrides
it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from memgraph.config.fields import GLOBAL_ONLY
from memgraph.config.schema import Settings
from memgraph.errors import InvalidConfig, UnknownConfigKey, without_kind
from memgraph.paths import OrchestratorPaths, global_config_file, runtime_root

ENVIRONMENT_PREFIX = "MEMGRAPH_"
DEFAULT_ORIGIN = "default"
CODE_ORIGIN = "code"
_STORAGE_URL = "memory.storage.url"

_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True, slots=True)
class SettingValue:
    """An effective setting. ``origin``: a file's path, a variable, ``code`` or ``default``."""

    key: str
    value: Any
    origin: str


Layer = dict[str, SettingValue]
"""Settings of one origin by their keys."""


def load_settings(
    root: str | os.PathLike[str],
    orchestrator: str | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Settings:
    """Return the settings for a runtime root, or for one of its orchestrators.

    Args:
        root: the folder with ``memgraph.toml``, which is optional; ``~`` allowed.
        orchestrator: also read ``<root>/<orchestrator>/memory/config.toml``.
        environ: environment variables; None: those of the process.
        overrides: nested or dotted keys, e.g. ``{"memory.retrieval.top_n": 5}``.

    Raises:
        UnknownConfigKey: a key does not exist; ``details`` has ``key`` and ``origin``.
        InvalidConfig: a value has the wrong type or range, or a file cannot be read.
    """
    root = runtime_root(root)
    layers = [_read_toml(global_config_file(root))]
    own: Layer = {}
    if orchestrator is not None:
        own = _read_toml(OrchestratorPaths(root, orchestrator).config_file)
        for name in own:
            if keys()[name].global_only:
                raise _invalid(own[name], "applies to the whole process: set it globally")
        layers.append(own)
    layers.append(_from_environment(os.environ if environ is None else environ))
    layers.append(_layer(overrides or {}, CODE_ORIGIN))
    merged: Layer = {}
    settings = Settings()
    # Validating after each layer attributes an error to the layer that was added last.
    for layer in layers:
        if layer:
            merged.update(layer)
            settings = _validated(merged)
    if orchestrator is not None and (
        place := own.get(_STORAGE_URL) or _place(merged, orchestrator)
    ):
        merged[_STORAGE_URL] = place
        settings = _validated(merged)
    settings._origins.update({name: setting.origin for name, setting in merged.items()})
    return settings


def _place(merged: Layer, orchestrator: str) -> SettingValue | None:
    """Return the location of an orchestrator by ``placement``, or None if no pattern matches."""
    if (placement := merged.get("memory.storage.placement")) is None:
        return None
    for entry in placement.value:
        pattern, _, url = entry.partition("=")
        if fnmatchcase(orchestrator, pattern):
            return SettingValue(_STORAGE_URL, url, placement.origin)
    return None


def describe(settings: Settings) -> list[SettingValue]:
    """Return every effective setting with its origin, in the order of the reference."""
    origins = settings._origins
    return [
        SettingValue(name, attrgetter(name)(settings), origins.get(name, DEFAULT_ORIGIN))
        for name in keys()
    ]


def _read_toml(path: Path) -> Layer:
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InvalidConfig(f"{path} cannot be read: {error.strerror}", origin=str(path)) from error
    # Imported late: it takes 16 ms, and many roots have no such file.
    import tomllib

    try:
        tree = tomllib.loads(text.decode("utf-8"))
    # Errors of TOML and UTF-8 are ValueErrors, as those of overlong numbers; deep nesting is not.
    except (ValueError, RecursionError) as error:
        raise InvalidConfig(f"{path} is not valid TOML: {error}", origin=str(path)) from error
    return _layer(tree, str(path))


def _layer(tree: Mapping[str, Any], origin: str, prefix: str = "") -> Layer:
    """Return the settings of a tree of tables, whose keys may be dotted."""
    layer: Layer = {}
    for part, value in tree.items():
        name = f"{prefix}{part}"
        if name in keys():
            layer[name] = SettingValue(name, value, origin)
        elif isinstance(value, Mapping) and value:
            layer |= _layer(value, origin, f"{name}.")
        elif name not in groups():
            raise _unknown(name, origin)
        elif not isinstance(value, Mapping):
            raise _invalid(SettingValue(name, value, origin), "must be a table of settings")
    return layer


def _from_environment(environ: Mapping[str, str]) -> Layer:
    layer: Layer = {}
    for variable in sorted(environ):
        path = variable.removeprefix(ENVIRONMENT_PREFIX)
        # Only nested names and those with MEMORY are ours; MEMGRAPH_PORT may belong to others.
        if path == variable or not ("__" in path or path.startswith("MEMORY")):
            continue
        name = path.lower().replace("__", ".")
        if name not in keys():
            raise _unknown(name, variable)
        given = SettingValue(name, environ[variable], variable)
        try:
            layer[name] = replace(given, value=_parse(keys()[name].kind, environ[variable]))
        except (KeyError, ValueError, RecursionError):
            raise _invalid(given, f"is not of type {keys()[name].type_text}") from None
    return layer


def _parse(kind: type, text: str) -> Any:
    """Return the text of a variable as a value; a list is separated by ``:``, or a JSON list.

    Raises:
        ValueError, KeyError, RecursionError: it is no value of this kind.
    """
    if kind is bool:
        return _TRUTH[text.strip().lower()]
    if kind in (int, float):
        return kind(text)
    if kind is not tuple:
        return text
    # A JSON list may contain the separator in its items.
    is_json = text.lstrip().startswith("[")
    return json.loads(text) if is_json else [part for part in text.split(os.pathsep) if part]


def _invalid(setting: SettingValue, problem: str) -> InvalidConfig:
    key, origin = setting.key, setting.origin
    return InvalidConfig(f"{key} in {origin} {problem}", key=key, origin=origin)


def _validated(merged: Layer) -> Settings:
    try:
        return Settings.model_validate(_nested(merged))
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
        setting = merged[_known_prefix(problem["loc"])]
        raise _invalid(setting, f"is invalid: {without_kind(problem['msg'])}") from None


def _nested(merged: Layer) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, setting in merged.items():
        *parents, last = name.split(".")
        table = tree
        for part in parents:
            table = table.setdefault(part, {})
        # Strict validation takes no list for a tuple.
        value = setting.value
        table[last] = tuple(value) if isinstance(value, list) else value
    return tree


def _known_prefix(location: tuple[int | str, ...]) -> str:
    """Return the key for the location of an error, without the position in a list."""
    name = ".".join(str(part) for part in location)
    while name not in keys():
        name = name.rpartition(".")[0]
    return name


def _unknown(name: str, origin: str) -> UnknownConfigKey:
    import difflib  # takes 20 ms, and only this message needs it

    near = difflib.get_close_matches(name, list(keys()), n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return UnknownConfigKey(f"unknown setting {name!r} in {origin}{hint}", key=name, origin=origin)


@dataclass(frozen=True, slots=True)
class SettingReference:
    """The reference of one setting.

    Attributes:
        name: dotted, e.g. ``memory.retrieval.top_n``.
        kind: bool, int, float, str or tuple (of str).
        choices: the allowed strings, if limited.
        field: has the default, the range and the description.
        global_only: not allowed in an orchestrator's own file.
    """

    name: str
    kind: type
    choices: tuple[str, ...]
    field: FieldInfo
    global_only: bool

    @property
    def type_text(self) -> str:
        """Return the type as text for people."""
        if self.choices:
            return " or ".join(f'"{choice}"' for choice in self.choices)
        return "list of str" if self.kind is tuple else self.kind.__name__


@cache
def keys() -> dict[str, SettingReference]:
    """Return every key by its dotted name, in the order of the schema."""
    return {key.name: key for key in _walk(Settings, "")}


@cache
def groups() -> frozenset[str]:
    """Return the dotted names of all tables, e.g. ``memory.retrieval``."""
    return frozenset(
        name.rsplit(".", depth)[0] for name in keys() for depth in range(1, name.count(".") + 1)
    )


def _walk(
    group: type[BaseModel], prefix: str, *, global_only: bool = False
) -> Iterator[SettingReference]:
    """Yield the keys of a group; properties of the group apply to all of them."""
    for name, field in group.model_fields.items():
        annotation: Any = field.annotation
        is_global = global_only or field.json_schema_extra == GLOBAL_ONLY
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from _walk(annotation, f"{prefix}{name}.", global_only=is_global)
            continue
        # pydantic has unpacked Annotated: its constraints are in field.metadata.
        choices = get_args(annotation) if get_origin(annotation) is Literal else ()
        yield SettingReference(
            name=prefix + name,
            kind=str if choices else get_origin(annotation) or annotation,
            choices=choices,
            field=field,
            global_only=is_global,
        )
