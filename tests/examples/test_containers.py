"""The image and what runs it, read as their tools would: no container engine is needed."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import yaml

from memgraph.config.loader import load_settings
from memgraph.surfaces.cli.app import run

ROOT = Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
IMAGE = f"memgraph-memory:{VERSION}"


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile with their arguments, lines joined."""
    text = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(each.split(None, 1)[0], each.split(None, 1)[1].strip()) for each in lines]


def compose(name: str = "compose.yaml") -> dict[str, Any]:
    return yaml.safe_load((ROOT / "examples/containers" / name).read_text("utf-8"))


def last(name: str) -> str:
    return [argument for instruction, argument in instructions() if instruction == name][-1]


def runs(*arguments: str) -> None:
    """Check that the command line knows a command and its options; it is not run."""
    assert run([*arguments, "--help"]) == 0


def test_the_image_is_pinned_not_root_and_has_a_health_check() -> None:
    bases = [argument.split()[0] for name, argument in instructions() if name == "FROM"]
    assert all(base.startswith("python:3.") and base.endswith("-slim") for base in bases)
    assert last("USER") == "10001:10001"
    names = [name for name, _ in instructions()]
    assert names.index("USER") > names.index("RUN")
    assert "/healthz" in last("HEALTHCHECK")
    entry, command = json.loads(last("ENTRYPOINT")), json.loads(last("CMD"))
    assert entry == ["memgraph"]
    runs(*command)


def test_the_build_takes_what_the_package_needs_and_nothing_else() -> None:
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    taken = {line[1:] for line in lines if line.startswith("!")}
    sdist = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    included = sdist["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert taken == {each.lstrip("/") for each in included} | {"pyproject.toml", "constraints.txt"}
    assert all((ROOT / each).exists() for each in taken)


def test_compose_confines_the_server_and_keeps_its_volume(tmp_path: Path) -> None:
    document = compose()
    service = document["services"]["memgraph"]
    assert service["image"] == IMAGE
    assert (ROOT / "examples/containers" / service["build"]["context"]).resolve() == ROOT
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["tmpfs"] == ["/tmp"]
    [volume] = [each.split(":") for each in service["volumes"]]
    assert volume == [*document["volumes"], last("VOLUME")]
    runs(*service["command"])
    settings = load_settings(tmp_path, environ=service["environment"])
    assert "memgraph" in settings.memory.server.allowed_hosts


def test_two_servers_share_a_database_and_no_volume(tmp_path: Path) -> None:
    document = compose("compose-postgres.yaml")
    services = document["services"]
    first, second = services["memgraph-1"], services["memgraph-2"]
    volumes = [each["volumes"][0].split(":") for each in (first, second)]
    assert {name for name, _ in volumes} < set(document["volumes"])
    assert volumes[0][0] != volumes[1][0]
    assert {path for _, path in volumes} == {last("VOLUME")}
    for each in (first, second):
        assert (each["image"], each["cap_drop"]) == (IMAGE, ["ALL"])
        assert each["read_only"]
        runs(*each["command"])
        chosen = load_settings(tmp_path, environ=each["environment"]).memory
        assert chosen.storage.url.endswith("@postgres:5432/memgraph")
        [secret] = each["secrets"]
        assert each["environment"]["PGPASSFILE"] == f"/run/secrets/{secret['source']}"
        assert f"{secret['uid']}:" in last("USER")
    assert set(document["secrets"]) == {"password", "pgpass"}
    extras = "\n".join(argument for name, argument in instructions() if name == "RUN")
    assert "postgres]" in extras
