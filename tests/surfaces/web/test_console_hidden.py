"""Every page, for somebody who may see a part: what is hidden is not there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

import pytest
from canaries import EVERYTHING, PROJECTS, QUERY, TASKS, World, built, leaks, words_in
from console_browsing import Browser, console_served, harmless
from serving_worlds import Served

from memgraph import Viewer
from memgraph.clock import iso
from memgraph.model.access import Permission
from memgraph.model.enums import Sensitivity
from memgraph.surfaces.web.pages import PAGES

HERE = "/console/orc-1/"
ABSENT = "00000000000000000000000000"
VIEWERS = {
    "a task": Viewer(Sensitivity.RESTRICTED, session_ids=frozenset(TASKS[:1])),
    "an agent": Viewer(
        Sensitivity.RESTRICTED, frozenset(PROJECTS), frozenset(TASKS), agent_id="Kxagena"
    ),
}


@dataclass(frozen=True)
class Walked:
    """A server full of canaries, somebody's view of it, and what there is to ask for by its id."""

    served: Served
    world: World
    viewer: Viewer
    browser: Browser
    receipts: tuple[str, str]

    @property
    def own(self) -> list[str]:
        return [each.memory_id for each in self.world.seen(self.viewer)]

    @property
    def hidden(self) -> list[str]:
        return [each.memory_id for each in self.world.hidden(self.viewer)]

    def edges(self, *, seen: bool) -> list[str]:
        """Contradictions of which both sides are seen, or not."""
        own, found = set(self.own), self.contradictions()
        return [
            edge
            for edge, one, other in self.world.edges
            if ({one, other} <= own) is seen and edge in found
        ]

    def entities(self) -> tuple[list[str], list[str]]:
        """Entities that are seen, and those that are not."""
        own, whole = (
            self.served.service.orchestrator("orc-1", viewer=each).entities.list(limit=1_000)
            for each in (self.viewer, EVERYTHING)
        )
        seen = [each.entity_id for each in own]
        return seen, [each.entity_id for each in whole if each.entity_id not in set(seen)]

    def contradictions(self) -> set[str]:
        whole = self.served.service.orchestrator("orc-1", viewer=EVERYTHING)
        pages = [whole.contradictions.list(limit=500, resolved=one) for one in (False, True)]
        return {item.edge.edge_id for page in pages for item in page.items}


@pytest.fixture(scope="module", params=VIEWERS)
def walked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Walked]:
    viewer = VIEWERS[request.param]
    config = {"memory": {"receipts": {"query_text": True}, "embedding": {"provider": "none"}}}
    with console_served(tmp_path_factory.mktemp("walked") / "root", config=config) as served:
        world = built(served.service, "orc-1")
        secret = served.key(
            clearance=viewer.clearance,
            project_ids=sorted(viewer.project_ids),
            session_ids=sorted(viewer.session_ids),
            agent_id=viewer.agent_id,
        )
        receipts = []
        for one in (viewer, EVERYTHING):
            orc = served.service.orchestrator("orc-1", viewer=one)
            receipts.append(orc.recall(QUERY, top_n=200).receipt_id)
        with Browser(served, secret) as browser:
            yield Walked(served, world, viewer, browser, (receipts[0], receipts[1]))


def addresses(walked: Walked, path: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Addresses of a page about what is seen, and pairs about what is hidden and what is absent."""
    name = path.removeprefix("/{orchestrator}/")
    now = iso(walked.served.service.clock.now_ms())
    own, hidden = walked.own, walked.hidden
    if name == "memories/{memory_id}":
        then = [f"memories/{each}?as_of={now}" for each in own[:2]]
        pairs = [(f"memories/{each}", f"memories/fact_{ABSENT}") for each in hidden[::9]]
        return [*(f"memories/{each}" for each in own[:8]), *then], pairs
    if name.startswith("contradictions/{edge_id}"):
        tail = name.removeprefix("contradictions/{edge_id}")
        seen = [f"contradictions/{each}{tail}" for each in walked.edges(seen=True)[:4]]
        return seen, [
            (f"contradictions/{each}{tail}", f"contradictions/edge_{ABSENT}{tail}")
            for each in walked.edges(seen=False)[:6]
        ]
    if name == "answers/{receipt_id}":
        one, other = walked.receipts
        return [f"answers/{one}"], [(f"answers/{other}", f"answers/rcl_{ABSENT}")]
    if name == "entities/{entity_id}":
        own_entities, hidden_entities = walked.entities()
        return [f"entities/{each}" for each in own_entities[:4]], [
            (f"entities/{each}", f"entities/ent_{ABSENT}") for each in hidden_entities[:4]
        ]
    if "{" in name:
        return [], []
    states = ("decided", "changes", "dismissed")
    lists = [name, f"{name}?as_of={now}", *(f"{name}?state={each}&status=any" for each in states)]
    seeds = "&".join(f"seed={each}" for each in [*own[:5], *hidden[:20]])
    searches = [f"{name}?q={quote(QUERY)}&status={each}" for each in ("", "any")]
    return [*lists, *searches, f"{name}?{seeds}&hops=2&expand={hidden[0]}"], []


PATHS = sorted({page.path for page in PAGES if page.method == "GET"} - {"/"})


TELLING = {
    "/{orchestrator}/",
    "/{orchestrator}/memories",
    "/{orchestrator}/memories/{memory_id}",
    "/{orchestrator}/contradictions/{edge_id}",
    "/{orchestrator}/answers/{receipt_id}",
    "/{orchestrator}/graph/data",
}
"""Pages of which every reader here sees something."""


def test_nothing_hidden_is_told_by_a_page(walked: Walked) -> None:
    forbidden = walked.world.forbidden(walked.viewer)
    for path in PATHS:
        seen, pairs = addresses(walked, path)
        shown = set()
        for address in seen:
            answer = walked.browser.open(HERE + address)
            assert answer.status_code == 200, (address, answer.status_code)
            assert leaks([answer.text], forbidden - _asked(address)) == set(), address
            shown |= words_in([answer.text])
            if answer.headers["content-type"].startswith("text/html") and "export" not in address:
                harmless(answer.text)
        if path in TELLING and seen:
            assert shown, "a page that shows nothing proves nothing"
        for hidden, absent in pairs:
            one, other = walked.browser.open(HERE + hidden), walked.browser.open(HERE + absent)
            assert one.status_code == other.status_code == 404, hidden
            id_of = [each.split("/")[1] for each in (hidden, absent)]
            assert one.text.replace(id_of[0], "ID") == other.text.replace(id_of[1], "ID")


def _asked(address: str) -> set[str]:
    """What the asker named: it comes back in the links of a page."""
    return {part.partition("&")[0] for part in address.split("=")[1:]}


def test_forms_about_what_is_hidden_are_answered_as_about_what_is_absent(walked: Walked) -> None:
    forms = [
        ("contradictions", edge, "edge_", {"decision": way, "winner": "x", "reason": "x"})
        for edge in walked.edges(seen=False)[:2]
        for way in ("resolve", "dismiss", "reopen")
    ]
    assert len(forms) == 6
    for kind, asked, prefix, fields in forms:
        absent = prefix + ABSENT
        one = walked.browser.send(f"{HERE}{kind}/{asked}", **fields)
        other = walked.browser.send(f"{HERE}{kind}/{absent}", **fields)
        assert one.status_code == other.status_code == 404
        assert one.text.replace(asked, "ID") == other.text.replace(absent, "ID")


def test_somebody_without_any_permission_but_writing_is_shown_nothing(walked: Walked) -> None:
    secret = walked.served.key(permissions=frozenset({Permission.WRITE}))
    with Browser(walked.served, secret) as browser:
        for path in PATHS:
            if "{" in path.removeprefix("/{orchestrator}"):
                continue
            answer = browser.open(HERE + path.removeprefix("/{orchestrator}/"))
            assert answer.status_code == 403, path
            assert not words_in([answer.text])
