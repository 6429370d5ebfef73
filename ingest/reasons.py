"""Machine-readable reasons why a dropped file, or a part of one, was not accepted."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from memgraph.errors import IngestRejected


class RejectionReason(StrEnum):
    """Why a whole file is rejected (``IngestRejected.details['reason']``) or left for later.

    A ``held`` file waits for an operator: ``memgraph ingest --retry`` tries it again. The second
    group are not failures: the file stays where it is. ``partial`` is for an accepted file.
    """

    LINK = "link"
    HARD_LINK = "hard_link"
    NOT_REGULAR_FILE = "not_regular_file"
    UNSUPPORTED_TYPE = "unsupported_type"
    TOO_LARGE = "too_large"
    TOO_DEEP = "too_deep"
    UNREADABLE = "unreadable"
    EMPTY = "empty"
    BINARY = "binary"
    NUL_BYTES = "nul_bytes"
    NOT_UTF8 = "not_utf8"
    ENCODING_TRUNCATED = "encoding_truncated"
    JSON_INVALID = "json_invalid"
    JSON_DUPLICATE_KEY = "json_duplicate_key"
    JSON_TOO_DEEP = "json_too_deep"
    JSON_SHAPE_UNKNOWN = "json_shape_unknown"
    MARKDOWN_TOO_DEEP = "markdown_too_deep"
    SCHEMA_VIOLATION = "schema_violation"
    NO_VALID_ITEMS = "no_valid_items"
    TOO_MANY_ITEMS = "too_many_items"
    HELD = "held"

    STILL_BEING_WRITTEN = "still_being_written"
    HIDDEN_OR_TEMPORARY = "hidden_or_temporary"
    INTERRUPTED = "interrupted"
    BEING_STORED = "being_stored"

    PARTIAL = "partial"


class SkippedPart(StrEnum):
    """Why a part of an accepted file was left out or changed; the code of a ``ParseFinding``."""

    IDENTITY_NOT_ALLOWED = "identity_not_allowed"
    FIELD_NOT_ALLOWED = "field_not_allowed"
    VALUE_INVALID = "value_invalid"
    KEY_REPEATED = "key_repeated"
    EDGE_ENDPOINT_MISSING = "edge_endpoint_missing"
    EDGE_REPEATED = "edge_repeated"
    SELF_EDGE = "self_edge"
    CONFIDENCE_CAPPED = "confidence_capped"
    IMPORTANCE_CAPPED = "importance_capped"
    IDENTITY_LOWERED = "identity_lowered"
    PICTURE = "picture"
    COMMENT = "comment"
    TABLE_OF_CONTENTS = "table_of_contents"
    EMPTY_ROW = "empty_row"
    EMPTY_SECTION = "empty_section"
    PLACEHOLDER = "placeholder"
    RULE = "rule"
    NO_WORDS = "no_words"
    CONTENT_SPLIT = "content_split"
    CONTROL_CHARACTERS_REMOVED = "control_characters_removed"
    FRONT_MATTER_INVALID = "front_matter_invalid"
    DATE_NOT_UNDERSTOOD = "date_not_understood"
    DATE_MISSING = "date_missing"
    MESSAGE_INVALID = "message_invalid"
    MESSAGE_EMPTY = "message_empty"
    CONTENT_PART_SKIPPED = "content_part_skipped"
    MESSAGE_HIDDEN = "message_hidden"
    MESSAGE_REPEATED = "message_repeated"
    BRANCH_LEFT_OUT = "branch_left_out"
    BRANCH_BROKEN = "branch_broken"
    NOTHING_EXTRACTED = "nothing_extracted"
    PROPOSAL_REJECTED = "proposal_rejected"
    PROPOSAL_REPEATED = "proposal_repeated"
    EXTRACTOR_FAILED = "extractor_failed"
    EXTRACTOR_NOT_ASKED = "extractor_not_asked"


ITEM_REFUSED = frozenset(
    (
        SkippedPart.IDENTITY_NOT_ALLOWED,
        SkippedPart.FIELD_NOT_ALLOWED,
        SkippedPart.VALUE_INVALID,
        SkippedPart.KEY_REPEATED,
        SkippedPart.EDGE_ENDPOINT_MISSING,
        SkippedPart.EDGE_REPEATED,
        SkippedPart.SELF_EDGE,
        SkippedPart.MESSAGE_INVALID,
    )
)
"""Reasons that reject a memory or an edge of a structured file, which is accepted in part."""


CHANGED = frozenset(
    (
        SkippedPart.CONFIDENCE_CAPPED,
        SkippedPart.IMPORTANCE_CAPPED,
        SkippedPart.IDENTITY_LOWERED,
        SkippedPart.CONTENT_SPLIT,
        SkippedPart.DATE_NOT_UNDERSTOOD,
        SkippedPart.DATE_MISSING,
        SkippedPart.NOTHING_EXTRACTED,
        SkippedPart.PROPOSAL_REJECTED,
        SkippedPart.PROPOSAL_REPEATED,
        SkippedPart.EXTRACTOR_FAILED,
        SkippedPart.EXTRACTOR_NOT_ASKED,
    )
)
"""Reasons that leave no part of the file out; all others count as left out."""


def refuse(reason: RejectionReason, message: str, **details: Any) -> IngestRejected:
    """Return the error that rejects a whole file."""
    return IngestRejected(message, reason=reason.value, **details)
