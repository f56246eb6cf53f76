"""The drawn schedule: one file that loads nothing, with all arrivals in its bars."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.errors import BadInput
from harness.plan import Plan, plan_profile
from harness.report.schedule_page import draw, schedule_figure, schedule_page
from harness.spec.loadprofile import load_profile

PROFILE = """\
title: "Two <b>tenants</b>"
duration_s: 3000
longest_stream_s: 60
arrivals: {kind: poisson, rate_per_s: 2}
tokens:
  prompt: {kind: log_normal, median_tokens: 300, sigma: 1}
  output: {kind: fixed, tokens: 50}
mix: {tenants: [{name: gold, share: 1}, {name: free, share: 3}]}
"""


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    (tmp_path / "load.yaml").write_text(PROFILE)
    return plan_profile(load_profile(tmp_path / "load.yaml"), 1, 2.0)


def test_the_page_loads_nothing_and_escapes_what_was_written(plan: Plan) -> None:
    page = schedule_page(plan)
    outside = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"""(src|href)\s*=|<link|<img|@import|url\(""", outside)
    assert "<b>" not in outside and "Two &lt;b&gt;tenants" in outside
    figure = re.search(r'id="figure">(.*?)</script>', page, re.DOTALL)
    assert figure is not None
    assert json.loads(figure[1]) == json.loads(json.dumps(schedule_figure(plan)))


def test_every_arrival_is_in_a_bar(plan: Plan) -> None:
    data: list[dict[str, Any]] = schedule_figure(plan)["data"]
    free, gold, prompt, answer = data
    assert (free["name"], gold["name"]) == ("free", "gold")
    # 1500 clock seconds in at most 600 bars: 3 s each.
    assert (free["width"], len(free["x"])) == (3, 500)
    drawn = sum(per_s * 3 for trace in (free, gold) for per_s in trace["y"])
    assert drawn == pytest.approx(len(plan.schedule), rel=1e-3)
    assert sum(prompt["y"]) == sum(answer["y"]) == len(plan.schedule)


def test_the_last_bar_says_that_it_has_all_that_is_longer(plan: Plan) -> None:
    prompt, answer = schedule_figure(plan)["data"][2:]
    last = len(prompt["x"]) - 1
    assert prompt["text"] == [""] * last + [f"\u2265 {last * prompt['width']}"]
    assert prompt["y"][-1] == (plan.schedule.prompt_tokens >= last * prompt["width"]).sum()
    assert not any(answer["text"])  # all of one length


def test_a_place_that_cannot_be_written(plan: Plan, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--plot cannot be written"):
        draw(plan, tmp_path / "gone" / "p.html")
