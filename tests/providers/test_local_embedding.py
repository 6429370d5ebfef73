"""The shipped model: intact, deterministic, sensible, bounded in memory, quick enough to load."""

from __future__ import annotations

import json
import os
import re
import shutil
import string
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tokenizers import Tokenizer

from memgraph.errors import ProviderRejected
from memgraph.providers import local
from memgraph.providers.local import (
    CHECKSUMS,
    MODEL_DIRECTORY,
    MODEL_FILES,
    LocalEmbedding,
    WordPieces,
    verify,
)


@pytest.fixture(scope="module")
def model() -> LocalEmbedding:
    return LocalEmbedding()


def locomo() -> list[dict]:
    root = Path(__file__).parents[2]
    shared = Path(os.environ.get("MEMGRAPH_SHARED", root.parent / "shared"))
    path = shared / "data" / "locomo" / "locomo-dev.json"
    if not path.exists():
        pytest.skip("needs the shared LoCoMo conversations")
    return json.loads(path.read_text(encoding="utf-8"))


def test_shipped_files_are_intact_and_small() -> None:
    verify()
    assert sum(f.stat().st_size for f in MODEL_DIRECTORY.iterdir()) <= 16 * 2**20


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        *((name, "flipped") for name in (*MODEL_FILES, CHECKSUMS)),
        (MODEL_FILES[0], "missing"),
        (MODEL_FILES[-1], "cut"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, name: str, damage: str) -> None:
    directory = tmp_path / "model"
    shutil.copytree(MODEL_DIRECTORY, directory)
    target = directory / name
    content = bytearray(target.read_bytes())
    target.unlink()
    if damage == "flipped":
        content[len(content) // 2] ^= 1
        target.write_bytes(content)
    elif damage == "cut":
        target.write_bytes(content[:-9])
    with pytest.raises(ProviderRejected) as caught:
        LocalEmbedding(directory).embed(["hello"])
    # A digit changed in the list shows as a file that does not match it.
    allowed = [name, *MODEL_FILES] if (name, damage) == (CHECKSUMS, "flipped") else [name]
    assert caught.value.details["file"] in allowed


def test_vectors_never_change(model: LocalEmbedding) -> None:
    """Stored vectors are compared with new ones: new vectors need a new model identity."""
    vector = model.embed(["The quick brown fox, 42."])[0]
    assert model.model == "memgraph-static-256@1"
    pinned = [0.01173, 0.079097, -0.035208, 0.29706, -0.076261, -0.025678]
    np.testing.assert_allclose(vector[:6], pinned, atol=1e-5)


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("The dog chased the cat.", "A puppy ran after a kitten.", "Interest rates rose again."),
        ("We will deploy on Friday.", "The release goes out on Friday.", "She likes mushrooms."),
        ("My sister lives in Oslo.", "Her home is in Norway.", "The build failed twice."),
    ],
)
def test_meaning_shows(model: LocalEmbedding, text: str, near: str, far: str) -> None:
    vectors = model.embed([text, near, far])
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.1


def test_one_text_or_many_give_the_same_bytes(model: LocalEmbedding) -> None:
    texts = [f"turn {i}: " + "word " * (i % 40) for i in range(900)]
    together = model.embed(texts)
    alone = np.concatenate([model.embed([text]) for text in texts])
    assert together.tobytes() == alone.tobytes()


def test_bulk_memory_is_flat() -> None:
    """30,000 texts need little more than their vectors (29 MB)."""
    script = """
import resource
from memgraph.providers.local import LocalEmbedding
model = LocalEmbedding()
texts = [f"turn {i}, a few more words to look up" for i in range(30_000)]
model.embed(texts[:2_000])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rows = model.embed(texts)
assert rows.shape == (30_000, 256)
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
print(grown)
"""
    pytest.importorskip("resource")
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) < 30_000 * 256 * 4 / 2**20 + 40


def test_finds_evidence_in_conversations(model: LocalEmbedding) -> None:
    """Mean share of a question's evidence turns in the ten nearest, cosine alone."""
    shares: list[float] = []
    for conversation in locomo():
        turns = [
            turn
            for name, session in conversation["conversation"].items()
            if re.fullmatch(r"session_\d+", name)
            for turn in session
        ]
        place = {turn["dia_id"]: i for i, turn in enumerate(turns)}
        vectors = model.embed([turn["text"] for turn in turns])
        for question in conversation["qa"]:
            wanted = {place[e] for e in question["evidence"] if e in place}
            if wanted:
                nearest = np.argsort(-(vectors @ model.embed([question["question"]])[0]))[:10]
                shares.append(len(wanted & set(nearest.tolist())) / len(wanted))
    assert len(shares) > 900
    assert np.mean(shares) > 0.49


# Characters that are newer than the tables of the package `tokenizers` are classed otherwise there.
OLD_CHARACTERS = (
    st.characters(max_codepoint=0x5FF)
    | st.characters(min_codepoint=0x3040, max_codepoint=0x30FF)
    | st.characters(min_codepoint=0x4E00, max_codepoint=0x9FA5)
    | st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3)
    | st.characters(min_codepoint=0x1F600, max_codepoint=0x1F640)
    | st.sampled_from("\u3000\u2028\u200b\ufeff\ufffd\ue000\u0378\ufb01\U00020000")
)


@given(
    st.lists(
        st.text(OLD_CHARACTERS, max_size=60)
        | st.text(alphabet=string.printable + "\u2013\u2019\u201c\u2026\u00e9\u0130", max_size=200)
        | st.lists(st.sampled_from(["Mixed", "naïve", "x" * 120, "don't", "v1.2"])).map(" ".join),
        max_size=12,
    )
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_kept_words_give_the_ids_of_the_tokenizer(
    tokenizer: Tokenizer, pieces: WordPieces, texts: list[str]
) -> None:
    whole = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    unknown = tokenizer.token_to_id("[UNK]")
    expected = [[one for one in ids if one != unknown] for ids in whole]
    assert pieces.ids(texts) == expected
    assert pieces.ids(texts) == expected


def test_what_is_kept_of_words_is_bounded(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "_MOST_WORDS", 50)
    pieces = WordPieces(tokenizer.get_vocab())
    first = pieces.ids(["a harbour at night"])
    for number in range(40):
        pieces.ids([f"word{number} and another{number}"])
        assert len(pieces._known) <= 50
    assert pieces.ids(["a harbour at night"]) == first


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(MODEL_DIRECTORY / "tokenizer.json"))


@pytest.fixture(scope="module")
def pieces(tokenizer: Tokenizer) -> WordPieces:
    return WordPieces(tokenizer.get_vocab())
