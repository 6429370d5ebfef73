"""The reference orchestrator as a person runs it: its story, exit codes, models, and its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from model_server import KEY, ModelServer
from programs import Program

from examples.orchestrator.__main__ import main
from memgraph import MemoryKind, MemoryService, Viewer

PROJECT = Path(__file__).resolve().parents[2]
HERE = PROJECT / "examples" / "orchestrator"
PATIENT = ("--deadline-ms", "60000")
SEES = Viewer(project_ids=frozenset({"posters"}), session_ids=frozenset({"spring-festival"}))
LINES = (
    "counter/Mara: The guild wants 50 invitation cards.",
    "pressroom/Jonas: The cutter is back from repair.",
    "counter/Mara: The school pays for its yearbooks in May.",
)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    made = ModelServer()
    yield made
    made.close()


@pytest.fixture
def story(tmp_path: Path) -> Path:
    path = tmp_path / "story.txt"
    path.write_text("\n".join(LINES), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in os.environ if each.startswith("MEMGRAPH_")]:
        monkeypatch.delenv(name)


def start(*arguments: str, **environ: str) -> Program:
    return Program(
        ["-m", "examples.orchestrator", *PATIENT, *arguments],
        cwd=PROJECT,
        env={**os.environ, "MEMGRAPH_MEMORY__COMPARISON__READER": "none", **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    code = main([*PATIENT, "--json", *arguments])
    return code, events(capsys.readouterr().out)


def turns(root: Path) -> Counter[str]:
    """What the conversations hold, and how often."""
    with MemoryService(root, environ={}, background=False) as service:
        shop = service.orchestrator("print-shop", viewer=SEES)
        return Counter(each.content for each in shop.memories.list(kinds=[MemoryKind.EPISODE]))


def test_the_story_shows_every_turn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main([*PATIENT, "--root", str(tmp_path), "--story", str(HERE / "story.txt")])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    for each in (
        "counter/Mara: The spring festival wants 400 posters",
        "pressroom/assistant: Recycled paper, 400 posters by 12 June.",
        "selected    plan",
        "step        plan",
        "remembered  ",
        "  evidence    ",
        " <- channel_transcript, conversation pressroom",
        "counter/assistant: The proof run jammed since the store room was too damp",
        "warning     access.denied",
        "task ended",
        "pressroom/assistant: On the risograph, in two colours.",
        "\nanswered 11, answered_before 0\n",
    ):
        assert each in out, each
    assert out.count("warning  ") == 1
    assert "I do not know" in out.split("@bakery")[1].split("!done")[0]


def test_what_was_answered_is_not_answered_again(
    tmp_path: Path, story: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--root", str(tmp_path / "root"), "--story", str(story))
    code, first = run(capsys, *arguments)
    assert (code, first[-1]["answered"]) == (0, 3)
    code, second = run(capsys, *arguments)
    assert (code, second) == (0, [{"event": "finished", "answered": 0, "answered_before": 3}])


def test_messages_may_come_from_stdin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(LINES)))
    code, shown = run(capsys, "--root", str(tmp_path))
    assert code == 0
    assert [each["text"] for each in shown if each["event"] == "message"] == [
        line.partition(": ")[2] for line in LINES
    ]


def test_a_model_that_has_no_answer_is_told_by_the_exit_code_and_nothing_is_lost(
    tmp_path: Path, story: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "none.json"
    script.write_text("[]", encoding="utf-8")
    root = tmp_path / "root"
    code, shown = run(capsys, "--root", str(root), "--story", str(story), "--script", str(script))
    assert code == 1
    assert len([each for each in shown if each["event"] == "model_failed"]) == 3
    assert turns(root) == Counter(
        [line.partition(": ")[2] for line in LINES] + ["I cannot answer at the moment."] * 3
    )


def test_wrong_use_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    (tmp_path / "odd.txt").write_text("nothing of the kind", encoding="utf-8")
    for *arguments, told in (
        ("--script", f"{tmp_path}/missing.yaml", "missing.yaml"),
        ("--story", f"{tmp_path}/odd.txt", "odd, line 1"),
        ("--script", f"{tmp_path}/odd.txt", "rules"),
        ("--name", "no/name", "name"),
        ("--deadline-ms", "0", "deadline"),
        ("--model", "openai/m", 'pip install "memgraph-memory[litellm]"'),
    ):
        given = ["--root", str(tmp_path / "root"), "--story", str(HERE / "story.txt"), *arguments]
        assert main(given) == 2
        assert told in capsys.readouterr().err


def test_killed_between_capture_and_reply_it_loses_nothing_and_keeps_nothing_twice(
    tmp_path: Path, story: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first two messages go to a model behind HTTP, which hangs at the second reply."""
    root = tmp_path / "root"
    server.behave(
        server.writes("note"), server.writes("Noted down."), server.writes("note"), server.hangs
    )
    arguments = ("--root", str(root), "--story", str(story))
    model = ("--model", "openai/m", "--api-base", server.url)
    process = start(*arguments, *model, "--json", OPENAI_API_KEY=KEY)
    shown: list[dict[str, Any]] = []
    try:
        assert process.stdout is not None
        for line in process.stdout:
            shown.append(json.loads(line))
            if sum(each["event"] == "selected" for each in shown) == 2:
                break
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    acknowledged = [each["memory_id"] for each in shown if each["event"] == "captured"]
    assert len(acknowledged) == 2
    assert server.requests[0]["path"].endswith("/chat/completions")
    assert server.requests[0]["authorization"] == f"Bearer {KEY}"
    code, again = run(capsys, *arguments)
    assert (code, again[-1]) == (0, {"event": "finished", "answered": 2, "answered_before": 1})
    captured = [each["memory_id"] for each in again if each["event"] == "captured"]
    assert captured[0] == acknowledged[1]
    said = [line.partition(": ")[2] for line in LINES]
    assert turns(root) == Counter([*said, "Noted down.", "Noted.", "Noted."])
    with MemoryService(root, environ={}, background=False) as service:
        shop = service.orchestrator("print-shop", viewer=SEES)
        assert shop.get(acknowledged[0]).content == said[0]
        assert shop.verify().ok


def test_a_model_that_fails_is_told_without_the_key(
    tmp_path: Path, story: Path, server: ModelServer
) -> None:
    server.behave(server.fails(401))
    model = ("--model", "openai/m", "--api-base", server.url)
    # A process of its own: litellm keeps clients and settings of earlier tests.
    arguments = ("--json", "--root", str(tmp_path / "root"), "--story", str(story))
    process = start(*arguments, *model, OPENAI_API_KEY=KEY)
    out, _ = process.communicate()
    shown = events(out)
    assert process.returncode == 1
    assert [each["text"] for each in shown if each["event"] == "model_failed"] == [
        "openai/m failed: AuthenticationError"
    ] * 3
    assert KEY not in json.dumps(shown)
