"""A schedule drawn before it is sent: one file that needs no network, as ``gpu-harness plan --plot`` writes it.

Arrivals over time, by tenant where there are several, with the planned faults; and how long prompts and answers are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.checks.units import NS_PER_S
from harness.errors import BadInput, Where
from harness.plan.describe import describe
from harness.plan.plan import Plan
from harness.replacing import replace_text
from harness.report.plotting import LOADER, packed_plotly
from harness.report.style import CSS
from harness.report.traces import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, Figure

_BARS = 600
"""At most so many bars of arrivals: more are finer than a screen."""
_TENANT_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY)
_PAGE_CSS = "#schedule { min-height:840px; background:#fff; border:1px solid var(--line); border-radius:8px; }"
_SCRIPT = """
var figure = JSON.parse(document.getElementById("figure").textContent);
loadPlotly().then(function () {
  Plotly.newPlot("schedule", figure.data, figure.layout, {responsive: true, displaylogo: false, doubleClick: "reset"});
});
"""


def draw(plan: Plan, path: Path) -> None:
    page = schedule_page(plan)
    try:
        replace_text(path, page)
    except OSError as error:
        raise BadInput(f"--plot cannot be written: {error.strerror}", where=Where(str(path))) from None


def schedule_page(plan: Plan) -> str:
    figure = json.dumps(schedule_figure(plan), separators=(",", ":"), allow_nan=False)
    figure = figure.replace("<", "\\u003c").replace(">", "\\u003e")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>plan: {escape(plan.title)}</title>\n<style>{CSS}{_PAGE_CSS}</style>\n</head>\n<body>\n<main>\n"
        f'<h1>{escape(plan.title)}</h1>\n<pre class="scroll">{escape(describe(plan))}</pre>\n'
        f'<div id="schedule"></div>\n</main>\n{packed_plotly()}\n'
        f'<script type="application/json" id="figure">{figure}</script>\n<script>{LOADER}{_SCRIPT}</script>\n'
        "</body>\n</html>\n"
    )


def schedule_figure(plan: Plan) -> Figure:
    """Plain data in plotly's own format."""
    width_s = max(1, int(np.ceil(plan.clock_s / _BARS)))
    data = [
        *_arrivals(plan, width_s),
        _lengths(plan.schedule.prompt_tokens, "prompt", 2, BLUE),
        _lengths(plan.schedule.output_tokens, "answer", 3, GREEN),
    ]
    several = len(data) > 3
    every = "each second" if width_s == 1 else f"mean of {width_s} s"
    layout = {
        "barmode": "stack",
        "bargap": 0.0,
        "showlegend": several,
        "legend": {"orientation": "h", "y": 1.05},
        "margin": {"l": 64, "r": 28, "t": 40, "b": 48},
        "paper_bgcolor": "#ffffff",
        "plot_bgcolor": "#ffffff",
        "xaxis": {"title": {"text": "clock seconds from the load's start"}, "range": [0, plan.clock_s]},
        "yaxis": {"title": {"text": f"arrivals/s ({every})"}, "domain": [0.52, 1.0], "rangemode": "tozero"},
        "xaxis2": {"title": {"text": "prompt tokens"}, "domain": [0.0, 0.47], "anchor": "y2"},
        "yaxis2": {"title": {"text": "requests"}, "domain": [0.0, 0.36], "anchor": "x2"},
        "xaxis3": {"title": {"text": "answer tokens"}, "domain": [0.53, 1.0], "anchor": "y3"},
        "yaxis3": {"domain": [0.0, 0.36], "anchor": "x3"},
        "shapes": [_band(plan, start_s, end_s) for _, start_s, end_s in _faults(plan)],
        "annotations": [_label(plan, name, start_s) for name, start_s, _ in _faults(plan)],
    }
    return {"data": data, "layout": layout}


def _arrivals(plan: Plan, width_s: int) -> list[dict[str, Any]]:
    bars = int(np.ceil(plan.clock_s / width_s))
    seconds = plan.schedule.t_ns // (width_s * NS_PER_S)
    middles = [(bar + 0.5) * width_s for bar in range(bars)]
    traces = []
    for tenant, colour in zip(sorted(set(plan.schedule.tenant.tolist())), cycle(_TENANT_COLOURS), strict=False):
        counts = np.bincount(seconds[plan.schedule.tenant == tenant], minlength=bars)
        per_s = [round(count / width_s, 3) for count in counts.tolist()]
        traces.append(
            {"type": "bar", "x": middles, "y": per_s, "width": width_s, "name": tenant, "marker": {"color": colour}}
        )
    return traces


def _lengths(tokens: NDArray[np.int64], name: str, axis: int, colour: str) -> dict[str, Any]:
    """Bars of one width up to the 99.5th of 100 requests, and all that is longer in the last one."""
    longest = int(np.sort(tokens)[int(0.995 * (len(tokens) - 1))])
    width = max(1, -(-longest // 60))
    counts: Sequence[int] = np.bincount(np.minimum(tokens, longest) // width).tolist()
    last = (len(counts) - 1) * width
    labels = [""] * len(counts)
    if tokens.max() >= last + width:
        labels[-1] = f"\u2265 {last}"
    return {
        "type": "bar",
        "text": labels,
        "textposition": "outside",
        "constraintext": "none",  # else it shrinks to the width of a bar
        "textangle": 0,
        "cliponaxis": False,
        "x": [(bar + 0.5) * width for bar in range(len(counts))],
        "y": counts,
        "width": width,
        "name": name,
        "showlegend": False,
        "marker": {"color": colour},
        "xaxis": f"x{axis}",
        "yaxis": f"y{axis}",
    }


def _faults(plan: Plan) -> list[tuple[str, float, float]]:
    """In scenario seconds; those that start when their turn comes have no place yet."""
    known = ((f.fault_id, f.starts_s, f.ends_s) for f in plan.faults)
    return [
        (name, start_s, start_s if end_s is None else end_s) for name, start_s, end_s in known if start_s is not None
    ]


def _band(plan: Plan, start_s: float, end_s: float) -> dict[str, Any]:
    edges = {"x0": start_s / plan.time_scale, "x1": end_s / plan.time_scale}
    place = {"type": "rect", "xref": "x", "yref": "y domain", "y0": 0, "y1": 1, "layer": "below"}
    return place | edges | {"fillcolor": VERMILION, "opacity": 0.15, "line": {"color": VERMILION, "width": 1}}


def _label(plan: Plan, name: str, start_s: float) -> dict[str, Any]:
    place = {"x": start_s / plan.time_scale, "y": 1.0, "xref": "x", "yref": "y domain", "xanchor": "left"}
    return place | {"text": escape(name), "showarrow": False, "font": {"size": 11, "color": VERMILION}}
