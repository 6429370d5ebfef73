from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.parse import decode
from ingest.reasons import RejectionReason, SkippedPart
from memgraph.errors import IngestRejected


def refused(data: bytes) -> str:
    with pytest.raises(IngestRejected) as caught:
        decode(data)
    return str(caught.value.details["reason"])


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain", "plain"),
        (b"\xef\xbb\xbfwith a mark", "with a mark"),
        ("sch\u00f6n".encode("utf-16"), "sch\u00f6n"),
        (b"\xfe\xff" + "big".encode("utf-16-be"), "big"),
        (b"one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("a\u2028b\x85c".encode(), "a\nb\nc"),
    ],
)
def test_reads_utf8_and_marked_utf16(data: bytes, text: str) -> None:
    assert decode(data) == (text, ())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", RejectionReason.EMPTY),
        (b" \n\t ", RejectionReason.EMPTY),
        (b"\xef\xbb\xbf", RejectionReason.EMPTY),
        (b"\x89PNG\r\n\x1a\n", RejectionReason.BINARY),
        (b"%PDF-1.7 text", RejectionReason.BINARY),
        (b"\x01\x02\x03\x04abc", RejectionReason.BINARY),
        (b"\x00\xff\xfe\x80abc", RejectionReason.BINARY),
        (b"text\x00text", RejectionReason.NUL_BYTES),
        ("caf\u00e9 au lait".encode("latin-1"), RejectionReason.NOT_UTF8),
        (b"\xff\xfe\x00\x00a\x00\x00\x00", RejectionReason.NOT_UTF8),
        ("cut off \u20ac".encode()[:-1], RejectionReason.ENCODING_TRUNCATED),
        ("cut off".encode("utf-16")[:-1], RejectionReason.ENCODING_TRUNCATED),
    ],
)
def test_refuses_with_a_reason(data: bytes, reason: RejectionReason) -> None:
    assert refused(data) == reason


def test_a_few_control_characters_are_removed_and_told() -> None:
    text, findings = decode(b"x" * 200 + b"\x1b" + b"y\x07z")
    assert text == "x" * 200 + "yz"
    assert [(each.code, each.count) for each in findings] == [
        (SkippedPart.CONTROL_CHARACTERS_REMOVED, 2)
    ]


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1))
def test_printable_text_survives(text: str) -> None:
    assert decode(text.encode()) == (text, ())
