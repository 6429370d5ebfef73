"""Features that only mean something together: a linear head cannot multiply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SLOT: Final = 0.4
"""Likeness below which what two statements say of their thing has nothing in common."""
SLOT_NAME: Final = 0.25
"""The same for names: two towns, two persons, two products."""


def joint_features(row: Mapping[str, float]) -> dict[str, float]:
    """Products of a pair's other features, by name."""
    cover = min(row["cover_a"], row["cover_b"])
    conflict = max(row["value_conflict"] > 0, row["clock_conflict"], row["date_conflict"])
    kinds = (row["value_conflict"] > 0) + row["clock_conflict"] + row["date_conflict"]
    kinds += row["year_conflict"]
    other = max(row["subject_differs"], row["tag_conflict"], row["version_conflict"],
                row["year_conflict"], row["qualifier_differs"] > 0)  # fmt: skip
    flip = max(row["sign_differs"], row["antonym"] > 0, row["scope_flip"] > 0.8)
    change = min(row["change_b"], 2.0) / 2.0
    still = 1.0 - change
    strict = max(float(row["antonym"] > 0), float(row["scope_flip"] > 0.8))
    signs = (row["negators_a"] + row["negatives_a"], row["negators_b"] + row["negatives_b"])
    # "There isn't a failing test" denies twice and agrees with "all tests pass".
    double = float(max(signs) >= 2 and sum(signs) % 2 == 0)
    kind = row["kind_swap"] * (1.0 - other)
    slot = max(row["slot_word"], row["slot_kind"], float(row["slot_hits"] > 0),
               float(row["slot_name"] >= SLOT_NAME))  # fmt: skip
    valued = max(conflict, row["slot_values"], float(row["qualifier_differs"] > 0))
    met = max(slot, 0.7 * valued)
    apart = float(met < SLOT)
    nothing_new = float(row["rest_b"] == 0 and not valued and not flip and not row["negators_b"])
    thing = max(row["other_name"], row["other_anchor"], row["other_modifier"])
    return {
        "slot": slot, "met": met, "apart": apart, "other_thing": thing, "nothing_new": nothing_new,
        "change_met": change * met, "change_apart": change * apart, "flip_met": flip * met,
        "flip_apart": flip * apart, "strict_apart": strict * apart,
        "conflict_slot": conflict * slot,
        "conflict_apart": conflict * float(slot < SLOT),
        "same_apart": (1.0 - conflict) * (1.0 - flip) * apart,
        "strict": strict, "strict_same": strict * (1.0 - other) * still,
        "strict_cover": strict * cover * still, "strict_double": strict * double,
        "flip_loose": flip * (1.0 - strict), "double": double, "double_flip": double * flip,
        "double_absolute": double * row["absolute_one"],
        "kind_clean": kind * still, "kind_cover": kind * cover * still,
        "kind_change": kind * change, "kind_subject": kind * row["subject_same"] * still,
        "conflict_any": float(conflict), "conflict_kinds": float(kinds), "other_any": float(other),
        "flip_any": float(flip),
        "conflict_clean": conflict * (1.0 - other) * still, "conflict_other": conflict * other,
        "conflict_cover": conflict * cover, "conflict_change": conflict * change,
        "conflict_dated": conflict * float(row["date_equal"] + row["tag_equal"] > 0),
        "flip_clean": flip * (1.0 - other) * still, "flip_other": flip * other,
        "flip_cover": flip * cover, "flip_change": flip * change,
        "flip_exclusive": flip * row["exclusive_both"],
        "flip_equal": flip * float(row["value_equal"] + row["clock_equal"] > 0),
        "flip_swap": flip * row["name_swap"],
        "antonym_conflict": float(row["antonym"] > 0) * conflict,
        "antonym_cover": float(row["antonym"] > 0) * cover,
        "same_clean": (1.0 - conflict) * (1.0 - flip) * (1.0 - other) * cover,
        "change_cover": change * cover, "change_subject": change * row["subject_in_b"],
        "absolute_cover": row["absolute_one"] * cover,
        "absolute_flip": row["absolute_one"] * flip,
        "swap_cover": row["name_swap_beside"] * cover,
        "swap_clean": row["name_swap_beside"] * still,
        "only_cover": float(row["value_only_a"] > 0 and row["value_only_b"] > 0) * cover,
    }  # fmt: skip
