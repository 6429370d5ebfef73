"""Drawing: the style, and rendering as SVG, PNG or an HTML page.

The same values give the same SVG, byte for byte: no date, fixed ids, and letters as outlines of
matplotlib's own font. Letters that it lacks, such as Chinese, Japanese and Korean ones, are taken
from an installed font of ``FURTHER_FONTS``; without one, a letter becomes a box. Texts come from
outside: they are drawn literally, never parsed as formulas.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from memgraph.errors import ExtraMissing, InvalidInput

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMS: Final = ("svg", "png", "html")
DPI: Final = 150
INK, MUTED, GRID = "#1c2733", "#6b7682", "#dfe4e8"
STATUS_COLORS: Final = {"active": "#2c7a4b", "superseded": "#b7791f", "retracted": "#b5443a"}
TYPE_COLORS: Final = {
    "Fact": "#1f5fa8",
    "Preference": "#8a4fa3",
    "Decision": "#b5443a",
    "Identity": "#2a7f86",
    "Event": "#b7791f",
    "Observation": "#5c6f82",
    "Goal": "#2c7a4b",
    "Todo": "#a1663a",
}
LineStyle = Literal["-", "--", "-.", ":"]
EDGE_STYLES: Final[dict[str, tuple[str, LineStyle]]] = {
    "RelatedTo": ("#9aa5b0", "-"),
    "Updates": ("#2c7a4b", "-"),
    "Contradicts": ("#b5443a", "--"),
    "CausedBy": ("#1f5fa8", "-"),
    "PartOf": ("#8a4fa3", "-"),
}
DECIDED_STYLE: Final[LineStyle] = ":"
DERIVED_STYLE: Final[tuple[str, LineStyle]] = (MUTED, "-.")
OWN_FONT: Final = "DejaVu Sans"
FURTHER_FONTS: Final = (
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Source Han Sans",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Droid Sans Fallback",
    "PingFang SC",
    "Hiragino Sans",
    "Apple SD Gothic Neo",
    "Microsoft YaHei",
    "Yu Gothic",
    "Malgun Gothic",
    "Arial Unicode MS",
    "Unifont",
)
_SETTINGS: Final[dict[Any, Any]] = {
    "svg.hashsalt": "memgraph",
    "svg.fonttype": "path",
    "font.size": 9.0,
    "text.color": INK,
    "text.parse_math": False,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
}

Fill = Callable[["Figure"], None]


def form_of(path: Path) -> str:
    """Return the format of a file, by its extension.

    Raises:
        InvalidInput: none of ``FORMS``.
    """
    form = path.suffix.removeprefix(".").casefold()
    if form not in FORMS:
        known = ", ".join(f".{each}" for each in FORMS)
        raise InvalidInput(f"a picture's name ends with one of {known}", field="output")
    return form


def require_matplotlib() -> None:
    """Raise ExtraMissing when matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise ExtraMissing(
            "drawing needs matplotlib; install it with: pip install 'memgraph[pictures]'",
            extra="pictures",
            package="matplotlib",
        )


def families() -> list[str]:
    """Return the fonts to search for letters, in order."""
    from matplotlib.font_manager import fontManager

    installed = set(fontManager.get_font_names())
    return [OWN_FONT, *(each for each in FURTHER_FONTS if each in installed)]


def drawn(fill: Fill, *, size: tuple[float, float], form: str) -> bytes:
    """Return a drawing as the content of a file.

    Args:
        fill: draws on an empty figure.
        size: width and height in inches.
        form: ``svg`` or ``png``.

    Raises:
        ExtraMissing: matplotlib is not installed.
    """
    require_matplotlib()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    made = io.BytesIO()
    described: dict[str, Any] = {"Software": None}
    if form == "svg":
        described = {"Date": None, "Creator": None}
    with mpl.rc_context(_SETTINGS | {"font.family": families()}), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="Glyph .* missing from font", category=UserWarning
        )
        figure = Figure(figsize=size, layout="constrained")
        fill(figure)
        figure.savefig(made, format=form, dpi=DPI, metadata=described)
    return made.getvalue()
