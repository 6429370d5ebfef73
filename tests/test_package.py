"""The package as a user gets it: names, errors, what importing costs, what the wheel holds."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import memgraph
from memgraph import errors
from memgraph.errors import MemgraphError

ROOT = Path(__file__).resolve().parent.parent


def subclasses(kind: type[MemgraphError]) -> list[type[MemgraphError]]:
    return [each for sub in kind.__subclasses__() for each in (sub, *subclasses(sub))]


def test_every_public_name_is_there() -> None:
    for name in memgraph.__all__:
        assert getattr(memgraph, name) is not None
    assert sorted(set(memgraph.__all__)) == sorted(memgraph.__all__)
    assert set(dir(memgraph)) == set(memgraph.__all__)


def test_every_error_has_a_code_of_its_own_and_a_place_in_the_tree() -> None:
    found = [MemgraphError, *subclasses(MemgraphError)]
    codes = [each.__dict__.get("code") for each in found]
    assert None not in codes
    assert len(set(codes)) == len(codes)
    drawn = str(errors.__doc__)
    # A surface may have errors of its own, for what only it can get wrong.
    for each in (one for one in found if one.__module__ == errors.__name__):
        assert each.__name__ in drawn, f"{each.__name__} is missing in the drawing"
        assert each.code in drawn, f"{each.code} is missing in the drawing"


def test_an_error_says_what_a_program_needs() -> None:
    error = errors.NotFound("no memory", memory_id="x")
    assert error.as_dict() == {
        "code": "memory.not_found",
        "message": "no memory",
        "details": {"memory_id": "x"},
    }


def test_every_extra_that_an_error_names_can_be_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = {
        match
        for path in (ROOT / "memgraph").rglob("*.py")
        for match in re.findall(
            r'ExtraMissing\.of\([^)]*extra="([a-z-]+)"', path.read_text(encoding="utf-8")
        )
    }
    assert {"server", "client"} <= named
    assert named <= set(project["optional-dependencies"])


# What is imported or made, and what is not loaded by then.
STAGES = (
    ("import memgraph", "sqlalchemy sqlmodel numpy networkx litellm alembic pydantic rich"),
    ("import memgraph.config, memgraph.paths, memgraph.log", "tomllib difflib platformdirs"),
    ("from memgraph import MemoryService", "sqlalchemy pysqlite3 numpy httpx"),
    (
        "from memgraph.providers.embedding import embedding_provider as made\n"
        "made('local'), made('fake')",
        "numpy tokenizers litellm openai",
    ),
)


def test_importing_loads_next_to_nothing_and_reads_no_environment() -> None:
    script = "import os, sys\nos.environ['MEMGRAPH_MEMORY__NONSENSE'] = '1'\n"
    script += "before = dict(os.environ)\n"
    for step, heavy in STAGES:
        script += f"{step}\nprint([m for m in {heavy.split()!r} if m in sys.modules])\n"
    script += "assert dict(os.environ) == before"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.splitlines() == ["[]"] * len(STAGES)


def test_recall_and_health_do_not_load_what_only_writers_need(tmp_path: Path) -> None:
    with memgraph.MemoryService(tmp_path, environ={}, background=False) as service:
        orc = service.orchestrator("o", create=True)
        orc.remember("The gate closes at nine.")
        orc.settle()
    script = (
        "import sys; from memgraph import MemoryService\n"
        f"with MemoryService({str(tmp_path)!r}, environ={{}}, background=False) as service:\n"
        "    assert service.orchestrator('o').recall('gate').items\n"
        "    assert service.health('o')['status'] == 'ready'\n"
        "    heavy = ('alembic', 'litellm', 'networkx', 'psycopg',\n"
        "        'sqlalchemy.dialects.postgresql')\n"
        "    print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "[]"


def test_the_wheel_holds_migrations_model_and_types(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for wanted in (
        "memgraph/py.typed",
        "ingest/py.typed",
        "ingest/pipeline.py",
        "memgraph/_migrations/env.py",
        "memgraph/_migrations/script.py.mako",
        "memgraph/_migrations/versions/0001_initial.py",
        "memgraph/providers/models/static-256/SHA256SUMS",
        "memgraph/text/data/given_names.txt",
        "memgraph/surfaces/adapters/__init__.py",
        "memgraph/surfaces/adapters/openai_agents.py",
    ):
        assert wanted in names, wanted
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "docs/"))]


OPTIONAL = ("psycopg", "litellm", "spacy")
SERVED = ("fastapi", "jinja2", "mcp", "prometheus_client", "uvicorn", "httpx")


@pytest.mark.parametrize(
    ("packages", "missing"),
    [
        (("surfaces.serve", "surfaces.http", "surfaces.web", "surfaces.mcp"), OPTIONAL),
        (("surfaces.cli", "operations", "service"), OPTIONAL + SERVED),
    ],
)
def test_modules_need_no_extra_but_their_own(
    packages: tuple[str, ...], missing: tuple[str, ...]
) -> None:
    script = (
        "import importlib, pkgutil, sys\n"
        f"for name in {missing!r}:\n"
        "    sys.modules[name] = None\n"
        f"for name in {packages!r}:\n"
        "    package = importlib.import_module(f'memgraph.{name}')\n"
        "    for module in pkgutil.walk_packages(getattr(package, '__path__', []), "
        "f'{package.__name__}.'):\n"
        "        importlib.import_module(module.name)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert done.stderr == ""
