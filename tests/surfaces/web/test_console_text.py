"""Whatever stands in a memory, or beside it, is text on every page: never markup or a script."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from console_browsing import HOME, Browser, Seen, console_served, harmless
from serving_worlds import Served

from ingest.pipeline import IngestPipeline

BREAKERS = (
    """"'><xss onload=alert(1)>{word}<script>alert(1)</script>""",
    """</textarea></title></style><xss>{word}<img src=x onerror=alert(1)>""",
    """javascript:alert('{word}')//" onmouseover="alert(1)" style="x:expression(1)""",
    """{{{{ 7 * 7 }}}}{{% include '/etc/passwd' %}}{word}<!--""",
    """\u202e<xss>{word}\u2066]]>&lt;script&gt;""",
)
"""Texts that leave where they were put, wherever that is."""


@dataclass(frozen=True)
class Poisoned:
    """A server whose memories hold such texts in every field, and where they are shown."""

    served: Served
    secret: str
    memory_id: str
    edge_id: str
    file_memory_id: str
    receipt_id: str


def broken(word: str, number: int = 0) -> str:
    """A text that tries to break out; its word is looked for on the pages."""
    return BREAKERS[number % len(BREAKERS)].format(word=f"canary{word}")


@pytest.fixture(scope="module", params=range(len(BREAKERS)))
def poisoned(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Poisoned]:
    kind: int = request.param
    root = tmp_path_factory.mktemp("poisoned") / "root"
    config = {
        "memory": {
            "receipts": {"query_text": True},
            "embedding": {"provider": "none"},
        }
    }
    with console_served(root, config=config) as served:
        yield _poisoned(served, kind)


def _poisoned(served: Served, kind: int) -> Poisoned:
    def text(word: str) -> str:
        return broken(word, kind)

    orc = served.service.orchestrator("orc-1", actor=text("actor"))
    source = {
        "source_path": str(orc.paths.ingest / text("path").replace("/", "_")),
        "conversation_id": text("conversation"),
        "workflow_run_id": text("run"),
        "step_id": text("step"),
        "locator": text("locator"),
    }
    one = orc.remember(
        text("content"),
        summary=text("summary"),
        tags=[text("tag")],
        attributes={text("key"): text("value")},
        session_id=text("session"),
        source_role=text("role"),
        item_id=text("item"),
        agent_id=text("agent"),
        source=source,
    )
    other = orc.remember("The gate closes at ten.", derived_from=[one])
    edge = orc.relate(one, "Contradicts", other, reason=text("edge"))
    ground = orc.remember(text("ground"))
    orc.remember("It stands on a ground.", derived_from=[ground])
    orc.retract(ground, reason=text("retracted"))
    orc.paths.ingest.mkdir(parents=True, exist_ok=True)
    name = text("file").replace("/", "_").replace("\\", "_")
    (orc.paths.ingest / f"{name}.md").write_text(
        f"# Notes\n\n- The gate of {text('line')} is open.\n"
    )
    IngestPipeline(orc).run()
    [file_memory] = [each.memory_id for each in orc.memories.list() if "canaryline" in each.content]
    bundle = orc.recall(f"canarycontent {text('query')}")
    secret = served.key(name=text("principal"))
    return Poisoned(served, secret, one, edge, file_memory, bundle.receipt_id)


@pytest.fixture
def browser(poisoned: Poisoned) -> Iterator[Browser]:
    with Browser(poisoned.served, poisoned.secret) as made:
        yield made


def untold(seen: Seen, *words: str) -> list[str]:
    """Those of the words that are not there as text, nor as the value of a field."""
    shown = seen.text + " ".join(seen.values("value"))
    return [each for each in words if f"canary{each}" not in shown]


def test_a_memory_with_all_that_belongs_to_it(browser: Browser, poisoned: Poisoned) -> None:
    seen = harmless(browser.page(f"{HOME}memories/{poisoned.memory_id}"))
    assert (
        untold(
            seen, "content", "summary", "tag", "key", "value", "session", "role", "item", "agent"
        )
        == []
    )
    assert (
        untold(seen, "path", "conversation", "run", "step", "locator", "actor", "edge", "principal")
        == []
    )


def test_the_lines_of_a_file(browser: Browser, poisoned: Poisoned) -> None:
    seen = harmless(browser.page(f"{HOME}memories/{poisoned.file_memory_id}"))
    assert untold(seen, "line", "file") == []


def test_a_case_and_what_was_decided(browser: Browser, poisoned: Poisoned) -> None:
    address = f"{HOME}contradictions/{poisoned.edge_id}"
    seen = harmless(browser.page(address))
    assert untold(seen, "content", "path", "edge", "actor") == []
    reason = broken("decision")
    assert browser.send(address, decision="dismiss", reason=reason).is_redirect
    assert untold(harmless(browser.page(address)), "decision") == []
    exported = browser.open(f"{address}/export")
    assert exported.headers["content-disposition"].startswith("attachment; filename=")
    assert untold(Seen(exported.text), "content", "path", "decision") == []
    assert not Seen(exported.text).tags & {"xss", "script", "img"}
    assert browser.send(address, decision="reopen", reason="x").is_redirect


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("", ("content", "principal")),
        ("contradictions", ("content",)),
        ("memories", ("content",)),
        ("answers", ("query", "actor")),
        ("contradictions?state=stale", ("ground", "retracted", "actor")),
        ("", ("summary", "ground", "retracted", "edge", "actor")),
    ],
)
def test_lists(browser: Browser, page: str, words: tuple[str, ...]) -> None:
    assert untold(harmless(browser.page(HOME + page)), *words) == []


def test_a_receipt(browser: Browser, poisoned: Poisoned) -> None:
    seen = harmless(browser.page(f"{HOME}answers/{poisoned.receipt_id}"))
    assert untold(seen, "query", "content", "actor") == []


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Somebody who sends such texts."""
    root = tmp_path_factory.mktemp("asked") / "root"
    with console_served(root) as served, Browser(served, served.key()) as made:
        yield made


@pytest.mark.parametrize("number", range(len(BREAKERS)))
@pytest.mark.parametrize(
    ("page", "field"),
    [
        ("memories", "q"),
        ("memories", "source"),
        ("memories", "since"),
        ("entities", "prefix"),
        ("memories", "type"),
        ("memories", "tag"),
        ("memories", "session"),
        ("memories", "before"),
        ("contradictions", "after"),
        ("contradictions", "as_of"),
        ("answers", "purpose"),
        ("answers", "task_id"),
        ("", "since"),
        ("", "until"),
    ],
)
def test_what_an_address_holds(stranger: Browser, page: str, field: str, number: int) -> None:
    answer = stranger.client.get(HOME + page, params={field: broken("asked", number)})
    assert answer.status_code in (200, 404, 422)
    harmless(answer.text)


@pytest.mark.parametrize("number", range(len(BREAKERS)))
def test_what_a_form_holds(stranger: Browser, number: int) -> None:
    text = broken("formed", number)
    chosen = stranger.send(f"{HOME}view", agent=text)
    assert chosen.is_redirect
    assert untold(harmless(stranger.page()), "formed") == []
    stranger.send(f"{HOME}view", agent="")


def test_what_a_path_holds(stranger: Browser) -> None:
    for path in (
        "memories/%3Cxss%3E",
        "%3Cxss%3E",
        "answers/%22%3E%3Cxss%3E",
        "entities/%3Cxss%3E",
        "contradictions/%00",
    ):
        answer = stranger.open(HOME + path)
        assert answer.status_code in (404, 422)
        harmless(answer.text)
