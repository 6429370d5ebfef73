"""The commands about entities, as a person and a program see them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import CommandLine
else:
    CommandLine = object


@pytest.fixture
def talk(cli: CommandLine) -> CommandLine:
    cli.remember("Ada Okafor bakes with Nora Quill.")
    cli.remember("Ada Okafor lives in Lisbon.")
    return cli


def test_a_profile_is_pleasant_to_read(talk: CommandLine) -> None:
    told = talk("entity", "orc-1", "ada okafor").out
    assert told.startswith("Ada Okafor  person\n")
    assert "mention count: 2" in told
    assert "Nora Quill       person" in told
    assert "Ada Okafor lives in Lisbon." in told


def test_what_is_not_there_is_told(talk: CommandLine) -> None:
    ran = talk("entity", "orc-1", "Quentin Zanzipool")
    assert ran.code == 1
    assert ran.err.startswith("error[memory.not_found]: no entity")


def test_a_bench_of_a_provider_that_is_not_configured_says_what_is_missing(
    cli: CommandLine, tmp_path: Path
) -> None:
    ran = cli("bench", "labels", "--data", str(tmp_path), "--provider", "spacy")
    assert (ran.code, ran.out) == (1, "")
    assert "memory.entities.spacy_model" in ran.err
