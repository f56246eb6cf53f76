"""The page in a real browser: it draws, fits, filters, prints, and asks the network for nothing."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from demo import demo

from harness.checks.judge import judge
from harness.report.page import html_page
from harness.spec.checks import GracefulDrainSpec

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome") or ""
pytestmark = pytest.mark.skipif(not BROWSER, reason="there is no Chromium here")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
)  # fmt: skip
PROBE = """
<script>
(function () {
  var waiting = setInterval(function () {
    if (!document.documentElement.hasAttribute("data-drawn")) { return; }
    clearInterval(waiting);
    var form = document.getElementById("filters"), body = document.getElementById("requests").tBodies[0];
    var said = {
      traces: document.getElementById("timeline").data.length,
      bars: document.querySelectorAll("#waterfall .bars .point").length,
      wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
      plot: document.querySelector("#timeline svg").getBoundingClientRect().width,
      place: document.getElementById("timeline").clientWidth,
      troubled: body.rows.length, first: body.rows[0].cells[3].textContent,
      asked: performance.getEntriesByType("resource").length
    };
    form.trouble.value = "0";
    form.words.value = "llm-g";
    form.dispatchEvent(new Event("input"));
    said.matched = body.rows.length;
    var pods = Array.from(body.rows).map(function (row) { return row.cells[5].textContent; });
    said.pods = Array.from(new Set(pods)).join();
    form.words.value = "";
    form.dispatchEvent(new Event("input"));
    document.querySelectorAll("#requests th button")[7].click();
    var ttft = Array.from(body.rows).map(function (row) { return Number(row.cells[7].textContent); });
    said.sorted = ttft.every(function (value, i) { return !i || ttft[i - 1] <= value || isNaN(value); });
    var place = document.createElement("pre");
    place.id = "probe";
    place.textContent = Object.keys(said).map(function (key) { return key + "=" + said[key]; }).join(";");
    document.body.appendChild(place);
  }, 20);
})();
</script>
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    history = demo(cut=3)
    html = html_page(history, judge(history, [GracefulDrainSpec()]), {})
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(html.replace("</body>", PROBE + "</body>"), encoding="utf-8")
    return file


@pytest.fixture
def browse(tmp_path: Path) -> Callable[..., str]:
    def run(*args: str) -> str:
        command = [BROWSER, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=20000", *args]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout

    return run


@pytest.mark.parametrize("width", [1280, 500])
def test_it_draws_fits_and_filters(page: Path, browse: Callable[..., str], width: int) -> None:
    dom = browse(f"--window-size={width},900", "--dump-dom", page.as_uri())
    found = re.search(r'<pre id="probe">(.*?)</pre>', dom)
    assert found, "nothing was drawn"
    said = dict(pair.split("=", 1) for pair in found[1].split(";"))
    assert int(said["traces"]) == 20 and int(said["bars"]) > 20
    assert int(said["wide"]) <= 0, "the page is wider than its window"
    assert abs(float(said["plot"]) - float(said["place"])) <= 2
    assert int(said["troubled"]) == 3 and said["first"] == "reset_mid_stream"
    assert int(said["matched"]) > 0 and said["pods"] == "llm-g"
    assert said["sorted"] == "true" and said["asked"] == "0"


def test_it_is_printed(page: Path, browse: Callable[..., str], tmp_path: Path) -> None:
    browse(f"--print-to-pdf={tmp_path / 'report.pdf'}", page.as_uri())
    assert (tmp_path / "report.pdf").stat().st_size > 50_000
