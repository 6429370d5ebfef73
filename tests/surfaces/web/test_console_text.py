"""Whatever stands in a memory, or beside it, is text on every page: never markup or a script."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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


SHOWN = {
    "memories/{memory_id}": (
        *("content", "summary", "tag", "key", "value", "session", "role", "item", "agent", "path"),
        *("conversation", "run", "step", "locator", "actor", "edge", "principal"),
    ),
    "memories/{file_memory_id}": ("line", "file"),
    "answers/{receipt_id}": ("query", "content", "actor"),
    "": ("content", "summary", "ground", "retracted", "edge", "actor", "principal"),
    "contradictions": ("content",),
    "memories": ("content",),
    "answers": ("query", "actor"),
}
"""The texts that each page shows."""


def test_what_a_memory_holds_is_text_on_every_page(browser: Browser, poisoned: Poisoned) -> None:
    for page, words in SHOWN.items():
        seen = harmless(browser.page(HOME + page.format_map(vars(poisoned))))
        assert untold(seen, *words) == [], page


def test_a_case_and_what_was_decided(browser: Browser, poisoned: Poisoned) -> None:
    address = f"{HOME}contradictions/{poisoned.edge_id}"
    assert untold(harmless(browser.page(address)), "content", "path", "edge", "actor") == []
    assert browser.send(address, decision="dismiss", reason=broken("decision")).is_redirect
    assert untold(harmless(browser.page(address)), "decision") == []
    exported = browser.open(f"{address}/export")
    assert untold(Seen(exported.text), "content", "path", "decision") == []
    assert not Seen(exported.text).tags & {"xss", "script", "img"}
    assert browser.send(address, decision="reopen", reason="x").is_redirect


FIELDS = {
    "memories": ("q", "source", "since", "type", "tag", "session", "before"),
    "entities": ("prefix",),
    "contradictions": ("after", "as_of"),
    "answers": ("purpose", "task_id"),
    "": ("since", "until"),
}
"""The query parameters of pages."""


def test_what_an_address_or_a_form_holds(tmp_path: Path) -> None:
    with console_served(tmp_path / "root") as served, Browser(served, served.key()) as stranger:
        for number in range(len(BREAKERS)):
            text = broken("asked", number)
            for page, field in ((page, each) for page, names in FIELDS.items() for each in names):
                answer = stranger.client.get(HOME + page, params={field: text})
                assert answer.status_code in (200, 404, 422), (page, field)
                harmless(answer.text)
            assert stranger.send(f"{HOME}view", agent=text).is_redirect
            assert untold(harmless(stranger.page()), "asked") == []
            stranger.send(f"{HOME}view", agent="")
        for path in ("memories/%3Cxss%3E", "%3Cxss%3E", "answers/%22%3E%3Cxss%3E"):
            answer = stranger.open(HOME + path)
            assert answer.status_code in (404, 422)
            harmless(answer.text)
