"""Parts of figures in plotly's own format, as plain data: importing plotly's classes costs more than drawing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.printable import line as one_line

Json = dict[str, Any]
Figure = dict[str, Any]
Point = tuple[int, float]

# Okabe and Ito's colours, told apart by people who do not see red and green as others do.
BLUE, ORANGE, GREEN, VERMILION, SKY, PURPLE, YELLOW, GREY = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442", "#7C8493",
)  # fmt: skip
POINTS = 1_200
"""At most about so many points of one line: more are finer than a screen."""


def line(
    name: str, x: Sequence[float], y: Sequence[float], colour: str, axis: str, *,
    hover: str = "", dash: str = "solid", fill: str = "none", width: float = 2, stack: str = "",
) -> Json:  # fmt: skip
    """Steps: a level holds until the next one. With ``stack`` it is an area on top of those before it."""
    trace: Json = {
        "type": "scatter", "mode": "lines", "name": name, "x": list(x), "y": list(y), "xaxis": "x", "yaxis": axis,
        "line": {"color": colour, "width": 0 if stack else width, "shape": "hv", "dash": dash}, "fill": fill,
        "hovertemplate": (hover or f"%{{y}} {name}") + "<extra></extra>", "showlegend": False,
    }  # fmt: skip
    if stack:
        trace |= {"stackgroup": stack, "fillcolor": rgba(colour, 0.75), "fill": "tonexty"}
    elif fill != "none":
        trace["fillcolor"] = rgba(colour, 0.12)
    return trace


def dots(name: str, x: Sequence[float], y: Sequence[float], text: Sequence[str], axis: str, marker: Json) -> Json:
    return {
        "type": "scatter", "mode": "markers", "name": name, "x": list(x), "y": list(y), "xaxis": "x", "yaxis": axis,
        "text": [plain(words) for words in text], "marker": marker, "showlegend": False,
        "hovertemplate": "%{y:.0f} ms, %{text}<extra></extra>",
    }  # fmt: skip


def plain(text: str, longest: int = 80) -> str:
    """plotly reads a few tags of HTML in any text; a name is to be read as it is written."""
    return one_line(text, longest).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def rgba(colour: str, alpha: float) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def thinned(points: Sequence[Point], most: int = POINTS) -> list[Point]:
    """The first, lowest, highest and last of each of equal spans, so that no peak is lost."""
    if len(points) <= most:
        return list(points)
    start, end = points[0][0], points[-1][0]
    spans: dict[int, list[int]] = {}
    for i, (t, value) in enumerate(points):
        span = (t - start) * (most // 4) // max(1, end - start)
        kept = spans.setdefault(span, [i, i, i, i])
        kept[1] = i if value < points[kept[1]][1] else kept[1]
        kept[2] = i if value > points[kept[2]][1] else kept[2]
        kept[3] = i
    return [points[i] for kept in spans.values() for i in sorted(set(kept))]
