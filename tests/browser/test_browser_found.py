"""Which browser is taken, and that it runs as the tests need it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browsing import NAMES, find_chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def _program(folder: Path, name: str) -> Path:
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text("#!/bin/sh\n", encoding="ascii")
    program.chmod(0o755)
    return program


def test_a_named_browser_comes_before_any_that_is_installed(tmp_path: Path) -> None:
    named = _program(tmp_path / "mine", "browser")
    _program(tmp_path / "bin", NAMES[0])
    path = str(tmp_path / "bin")
    assert find_chromium({"CHROMIUM": str(named), "PATH": path}) == named
    assert find_chromium({"CHROMIUM": "", "PATH": path}) == tmp_path / "bin" / NAMES[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_browser_is_found_under_each_of_its_names(tmp_path: Path, name: str) -> None:
    program = _program(tmp_path / "bin", name)
    assert find_chromium({"PATH": str(program.parent)}) == program


def test_where_there_is_none_it_is_said_and_a_wrong_name_is_an_error(tmp_path: Path) -> None:
    assert find_chromium({"PATH": str(tmp_path)}) is None
    with pytest.raises(FileNotFoundError, match="CHROMIUM names no file"):
        find_chromium({"CHROMIUM": str(tmp_path / "nothing")})


def test_the_browser_runs_scripts_and_draws(browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.set_content("<main><h1>One</h1></main>")
    assert page.evaluate("[innerWidth, document.querySelector('h1').textContent]") == [390, "One"]
    assert page.screenshot().startswith(b"\x89PNG")
    page.close()
