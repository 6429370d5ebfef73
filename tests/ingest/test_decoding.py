from __future__ import annotations

import pytest

from ingest.parse import decode
from ingest.reasons import SkippedPart


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


def test_a_few_control_characters_are_removed_and_told() -> None:
    text, findings = decode(b"x" * 200 + b"\x1b" + b"y\x07z")
    assert text == "x" * 200 + "yz"
    assert [(each.code, each.count) for each in findings] == [
        (SkippedPart.CONTROL_CHARACTERS_REMOVED, 2)
    ]
