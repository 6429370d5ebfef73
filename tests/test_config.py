"""Settings: precedence, origins, strict types, and a reference that matches the code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from docs.references import range_of
from memgraph.config import Settings, describe, keys, load_settings
from memgraph.errors import InvalidConfig, InvalidInput, UnknownConfigKey
from memgraph.paths import OrchestratorPaths, global_config_file

DOCS = Path(__file__).parent.parent / "docs" / "configuration.md"
TOP_N = "memory.retrieval.top_n"
TOP_N_VARIABLE = "MEMGRAPH_MEMORY__RETRIEVAL__TOP_N"


def write_global(root: Path, text: str) -> str:
    path = global_config_file(root)
    path.write_text(text, encoding="utf-8")
    return str(path)


def write_own(root: Path, text: str, name: str = "orc-1") -> str:
    path = OrchestratorPaths(root, name).config_file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def load(
    root: Path,
    orchestrator: str | None = None,
    environ: dict[str, str] | None = None,
    overrides: dict[str, Any] | None = None,
) -> Settings:
    return load_settings(root, orchestrator, environ=environ or {}, overrides=overrides)


def origin(settings: Settings, key: str) -> str:
    return {each.key: each.origin for each in describe(settings)}[key]


def refused(
    kind: type[InvalidInput], key: str, where: str, root: Path, **arguments: Any
) -> InvalidInput:
    with pytest.raises(kind) as caught:
        load(root, **arguments)
    assert type(caught.value) is kind
    assert caught.value.details == {"key": key, "origin": where}
    assert key in caught.value.message
    assert where in caught.value.message
    return caught.value


def test_defaults_without_any_file(tmp_path: Path) -> None:
    memory = load(tmp_path / "missing", "orc-1").memory
    assert memory.enabled is True
    assert memory.bulletin_mode == "every_message"
    assert (memory.retrieval.top_n, memory.retrieval.rrf_k) == (20, 60)
    assert (memory.retrieval.top_k_vector, memory.retrieval.top_k_text) == (50, 50)
    assert memory.bulletin.max_chars == 4_000
    assert memory.ingest.enabled is True
    assert memory.scope.cross_orchestrator is False
    assert memory.embedding.provider == "local"
    assert memory.extractor.provider == "none"
    assert memory.storage.synchronous == "FULL"
    schedule = memory.schedule
    assert (schedule.enrichment, schedule.consolidation) == ("0 2 * * *", "0 3 * * *")
    assert (schedule.decay, schedule.reflection) == ("0 4 * * *", "0 3 * * 0")


def test_precedence_and_origins_layer_by_layer(tmp_path: Path) -> None:
    assert origin(load(tmp_path), TOP_N) == "default"
    global_file = write_global(tmp_path, "[memory.retrieval]\ntop_n = 1\nrrf_k = 7")
    own_file = write_own(tmp_path, "[memory.retrieval]\ntop_n = 2")
    environ = {TOP_N_VARIABLE: "3"}
    expected = [
        (load(tmp_path), 1, global_file),
        (load(tmp_path, "orc-1"), 2, own_file),
        (load(tmp_path, "orc-1", environ), 3, TOP_N_VARIABLE),
        (load(tmp_path, "orc-1", environ, {"memory": {"retrieval": {"top_n": 4}}}), 4, "code"),
    ]
    for settings, value, where in expected:
        assert settings.memory.retrieval.top_n == value
        assert origin(settings, TOP_N) == where
        assert settings.memory.retrieval.rrf_k == 7
        assert origin(settings, "memory.retrieval.rrf_k") == global_file


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("memory.enabled", "False", False),
        ("memory.enabled", "1", True),
        ("memory.enabled", " yes ", True),
        ("memory.retrieval.top_n", "17", 17),
        ("memory.decay.rate", "0.25", 0.25),
        ("memory.decay.rate", "1", 1.0),
        ("memory.embedding.provider", "litellm/some/model", "litellm/some/model"),
        ("memory.storage.synchronous", "NORMAL", "NORMAL"),
        ("memory.ingest.allowed_roots", "/a:/b c", ("/a", "/b c")),
        ("memory.ingest.allowed_roots", "", ()),
    ],
)
def test_variables_are_parsed_by_type(tmp_path: Path, key: str, text: str, value: Any) -> None:
    variable = "MEMGRAPH_" + key.upper().replace(".", "__")
    settings = load(tmp_path, environ={variable: text})
    shown = {each.key: each for each in describe(settings)}[key]
    assert (shown.value, shown.origin) == (value, variable)
    assert type(shown.value) is type(value)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("memory.enabled", "maybe"),
        ("memory.enabled", ""),
        ("memory.retrieval.top_n", "5.0"),
        ("memory.retrieval.top_n", "0"),
        ("memory.decay.rate", "nan"),
        ("memory.scope.cross_orchestrator", "true"),
        ("memory.ingest.allowed_roots", "relative"),
    ],
)
def test_a_variable_of_the_wrong_type_is_named(tmp_path: Path, key: str, text: str) -> None:
    variable = "MEMGRAPH_" + key.upper().replace(".", "__")
    error = refused(InvalidConfig, key, variable, tmp_path, environ={variable: text})
    assert error.code == "config.invalid"


def test_variables_that_are_not_settings_are_left_alone(tmp_path: Path) -> None:
    environ = {
        "MEMGRAPH_ROOT": "/x",
        "MEMGRAPH_SHARED": "/y",
        "MEMGRAPH_PORT": "tcp://10.0.0.1:80",
        "MEMGRAPH_SERVICE_HOST": "10.0.0.1",
        "_MEMGRAPH_COMPLETE": "complete_bash",
        "MEMORY__ENABLED": "no",
    }
    assert load(tmp_path, environ=environ) == load(tmp_path)


@pytest.mark.parametrize(
    ("variable", "key"),
    [
        ("MEMGRAPH_MEMORY__RETRIEVAL__TOPN", "memory.retrieval.topn"),
        ("MEMGRAPH_RETRIEVAL__TOP_N", "retrieval.top_n"),
        ("MEMGRAPH_MEMORY_ENABLED", "memory_enabled"),
        ("MEMGRAPH_MEMORY__RETRIEVAL", "memory.retrieval"),
    ],
)
def test_an_unknown_variable_is_named(tmp_path: Path, variable: str, key: str) -> None:
    error = refused(UnknownConfigKey, key, variable, tmp_path, environ={variable: "1"})
    assert error.code == "config.unknown_key"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("memry = 1", "memry"),
        ("[memory]\nenable = true", "memory.enable"),
        ("[memory.retrieval]\ntopn = 1", "memory.retrieval.topn"),
        ("[memory.nothing]", "memory.nothing"),
        ('[memory.llm]\napi_key_env = "KEY"', "memory.llm.api_key_env"),
        ("[memory.retrieval.weights]\ntext = 0.1", "memory.retrieval.weights.text"),
        ("[memory.server.console]\nENABLED = true", "memory.server.console.ENABLED"),
    ],
)
def test_an_unknown_key_in_either_file_is_named(tmp_path: Path, text: str, key: str) -> None:
    own = write_own(tmp_path, text)
    refused(UnknownConfigKey, key, own, tmp_path, orchestrator="orc-1")
    assert load(tmp_path).memory.enabled
    refused(UnknownConfigKey, key, write_global(tmp_path, text), tmp_path)


def test_a_near_miss_is_suggested(tmp_path: Path) -> None:
    with pytest.raises(UnknownConfigKey, match=r"did you mean memory\.retrieval\.top_n\?"):
        load(tmp_path, overrides={"memory.retrieval.top_m": 1})


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[memory]\nenabled = "true"', "memory.enabled"),
        ('[memory.retrieval]\ntop_n = "5"', "memory.retrieval.top_n"),
        ("[memory.retrieval]\ntop_n = true", "memory.retrieval.top_n"),
        ("[memory.retrieval]\ntop_n = 0", "memory.retrieval.top_n"),
        ('[memory]\nbulletin_mode = "daily"', "memory.bulletin_mode"),
        ("[memory.scope]\ncross_orchestrator = true", "memory.scope.cross_orchestrator"),
        ('[memory.ingest]\nallowed_roots = "/a"', "memory.ingest.allowed_roots"),
        ('[memory.ingest]\nallowed_roots = ["a"]', "memory.ingest.allowed_roots"),
        ('[memory.embedding]\nprovider = "openai"', "memory.embedding.provider"),
        ('[memory.embedding]\napi_base = "ftp://x"', "memory.embedding.api_base"),
        ('[memory.embedding]\napi_base = "https://u:secret@x/"', "memory.embedding.api_base"),
        ('[memory.embedding]\napi_key_from = "sk-secret"', "memory.embedding.api_key_from"),
        ("memory = 3", "memory"),
        ("[memory]\nretrieval = 3", "memory.retrieval"),
        ("[[memory.retrieval]]\ntop_n = 3", "memory.retrieval"),
        ("[memory.enabled]", "memory.enabled"),
    ],
)
def test_a_wrong_value_is_named_even_where_it_would_be_overridden(
    tmp_path: Path, text: str, key: str
) -> None:
    where = write_global(tmp_path, text)
    error = refused(InvalidConfig, key, where, tmp_path)
    assert "secret" not in error.message
    good = {"memory.retrieval.top_n": 5, "memory.enabled": True, "memory.decay.rate": 0.1}
    refused(InvalidConfig, key, where, tmp_path, overrides=good)


@pytest.mark.parametrize(
    "content",
    [b"[memory", b"\xff\xfe", b"a = 1\na = 2", b"a = " + b"1" * 5_000, b"a = " + b"[" * 5_000],
)
def test_a_file_that_is_not_toml_is_named(tmp_path: Path, content: bytes) -> None:
    path = global_config_file(tmp_path)
    path.write_bytes(content)
    with pytest.raises(InvalidConfig) as caught:
        load(tmp_path)
    assert caught.value.details == {"origin": str(path)}
    path.unlink()
    path.mkdir()
    with pytest.raises(InvalidConfig, match=r"memgraph\.toml cannot be read"):
        load(tmp_path)


def test_a_key_of_the_process_is_refused_in_an_orchestrators_file(tmp_path: Path) -> None:
    text = "[memory.storage]\nvector_cache_mb = 8"
    write_global(tmp_path, text)
    assert load(tmp_path, "orc-1").memory.storage.vector_cache_mb == 8
    where = write_own(tmp_path, text)
    refused(
        InvalidConfig,
        "memory.storage.vector_cache_mb",
        where,
        tmp_path,
        orchestrator="orc-1",
    )


def test_every_default_survives_validation_and_has_a_meaning(tmp_path: Path) -> None:
    settings = load(tmp_path, overrides={name: key.field.default for name, key in keys().items()})
    assert settings.model_dump() == load(tmp_path).model_dump()
    assert all((key.field.description or "").endswith(".") for key in keys().values())


@pytest.mark.parametrize("name", [n for n, k in keys().items() if k.kind in (int, float)])
def test_every_number_has_a_range_that_holds(tmp_path: Path, name: str) -> None:
    key = keys()[name]
    bounds = range_of(key.field)
    assert bounds
    low, _, high = bounds.removeprefix("over ").replace(" to ", "..").partition("..")
    for beyond in (key.kind(float(low)) - 1, key.kind(float(high)) + 1):
        refused(InvalidConfig, name, "code", tmp_path, overrides={name: beyond})
    assert load(tmp_path, overrides={name: key.kind(float(high))}) != load(tmp_path)


def test_the_example_in_the_documentation_loads(tmp_path: Path) -> None:
    text = DOCS.read_text("utf-8").split("```toml\n")[1].split("```")[0]
    write_global(tmp_path, text)
    assert load(tmp_path).memory.retrieval.top_n == 10


def test_a_variable_gives_a_list_with_colons_as_json(tmp_path: Path) -> None:
    variable = "MEMGRAPH_MEMORY__STORAGE__PLACEMENT"
    placed = "team-*=postgresql+psycopg://db2/x"
    settings = load(tmp_path, environ={variable: json.dumps([placed])})
    assert settings.memory.storage.placement == (placed,)
    for wrong in ("[1]", "[", '["a", 2]'):
        with pytest.raises(InvalidConfig, match="placement"):
            load(tmp_path, environ={variable: wrong})
