"""However a text is written, it reads the same, and where it was written is known."""

from __future__ import annotations

import json
import unicodedata
from html import escape
from urllib.parse import quote

import pytest
from hypothesis import given, strategies as st

from memgraph.text.fold import FoldedBytes, fold

TEXT = "Für die “Größe” & das Gewicht: 412 Dinge, 🪚 inbegriffen."
WRITTEN = {
    "capitals": TEXT.upper(),
    "full width": TEXT.replace("412", "４１２"),
    "apart": unicodedata.normalize("NFD", TEXT),
    "entities": escape(TEXT).replace("ö", "&ouml;").replace("“", "&#8220;"),
    "address": quote(TEXT),
    "json": json.dumps(TEXT)[1:-1],
    "json in json": json.dumps(json.dumps(TEXT)[1:-1])[1:-1],
    "link": TEXT.replace("412 Dinge", "[412 Dinge](https://example.org/?a=1#b)"),
    "picture": TEXT.replace("412", "![412](412.png)"),
    "tags": TEXT.replace("412", '<b class="x">412</b>').replace("Dinge,", "Dinge,<br>"),
    "wrapped": TEXT.replace(": ", ":&nbsp;\n  > "),
    "marked": TEXT.replace("412", "**`412`**"),
}


@pytest.mark.parametrize("way", WRITTEN)
def test_what_reads_the_same_is_the_same(way: str) -> None:
    assert fold(WRITTEN[way]) == fold(TEXT)


@pytest.mark.parametrize("way", WRITTEN)
def test_where_it_was_written_is_known_and_no_more(way: str) -> None:
    written = WRITTEN[way].encode()
    around = b"\xe3\x81\x8c\xc3\xa4 ", b" \xc3\xa4\xe3\x81\x8c"
    data = written.join(around)
    folded = FoldedBytes(data)
    start = folded.data.index(fold(TEXT).encode())
    span = folded.span(start, start + len(fold(TEXT).encode()))
    assert data[slice(*span)] == written


@given(st.text())
def test_no_text_breaks_it_and_every_place_lies_in_it(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    folded = FoldedBytes(data)
    places = [folded.span(each, each + 1) for each in range(len(folded.data))]
    assert all(0 <= start < end <= len(data) for start, end in places)
    assert places == sorted(places)


def test_what_only_looks_escaped_stays() -> None:
    for each in ("100%ab rise", "a&b; c", "fish & chips", "2 < 3", "a]b"):
        assert fold(each) == each
