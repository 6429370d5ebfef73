"""The commands about entities, as a person and a program see them."""

from __future__ import annotations

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
