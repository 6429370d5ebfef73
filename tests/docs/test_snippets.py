"""Every snippet of the README and the guides runs: Python in order, and what stands behind ``$``.

The blocks of one file share a namespace, a folder and a runtime root. A line that begins with
``$ `` is run by the shell and has to succeed; a shell variable set in one lives on in the next.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from guides import ENVIRONMENTS, FILES, ROOT, run_python, snippets
from warm_command import warm_command

from memgraph.errors import DISTRIBUTION

# The two commands of the README set up the very environment in which this runs.
NOT_HERE = re.compile(r"^make |^git clone |^cd ")
TOO_LONG_S = 120
# A server that outlived a command that failed would hold the test up until then.
END_ALL = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"


def commands(body: str) -> list[str]:
    joined = body.replace("\\\n", " ")
    found = [line[2:] for line in joined.splitlines() if line.startswith("$ ")]
    return [line for line in found if not NOT_HERE.match(line)]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with ``memgraph``, which is loaded once for all snippets."""
    with warm_command(tmp_path_factory.mktemp("warm")) as folder:
        yield folder


def test_every_guide_has_snippets_and_each_an_environment_that_runs_it() -> None:
    assert len(FILES) > 3
    assert all(snippets(path) for path in FILES)
    assert {each.environment for path in FILES for each in snippets(path)} == ENVIRONMENTS


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_snippets_run(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: Path
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environ = {
        **os.environ,
        "MEMGRAPH_ROOT": str(tmp_path / "root"),
        "PATH": os.pathsep.join(
            map(str, (programs, Path(sys.executable).parent, os.environ["PATH"]))
        ),
        "NO_COLOR": "1",
    }
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMGRAPH_ROOT", environ["MEMGRAPH_ROOT"])
    run_python(path)
    script = [
        line
        for each in snippets(path)
        if (each.language, each.environment) == ("console", "")
        for line in commands(each.body)
    ]
    if not script:
        return
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join([END_ALL, *script])],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=TOO_LONG_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_what_is_installed_is_the_distribution_or_a_checkout_with_known_extras() -> None:
    """The name of the package alone would bring another project."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == DISTRIBUTION
    written = [
        found
        for path in FILES
        for found in re.findall(r"pip install ['\"]?([^\s'\"`]+)", path.read_text(encoding="utf-8"))
    ]
    asked = set()
    for each in written:
        name, _, extras = each.removesuffix("]").partition("[")
        asked |= {f"{name}[{extra}]" if extra else name for extra in extras.split(",")}
    allowed = {
        wanted
        for name in (".", DISTRIBUTION)
        for wanted in (name, *(f"{name}[{extra}]" for extra in project["optional-dependencies"]))
    }
    assert {".", ".[litellm]", ".[openai-agents]"} <= {*asked}
    assert {*asked} <= allowed
