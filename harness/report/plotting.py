"""plotly.js inside a page: compressed, since its five megabytes would be most of what people send around."""

from __future__ import annotations

import base64
import gzip
from functools import cache

LOADER = """
async function loadPlotly() {
  var packed = Uint8Array.from(atob(document.getElementById("plotly").textContent), function (c) {
    return c.charCodeAt(0);
  });
  var plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  var script = document.createElement("script");
  script.textContent = await new Response(plain).text();
  document.head.appendChild(script);
}
"""
"""Resolves when ``Plotly`` is there. Browsers before 2023 have no DecompressionStream; then it rejects."""


@cache
def packed_plotly() -> str:
    """A script element that no browser runs; ``LOADER`` unpacks it. The same bytes each time."""
    # Imported here: only pages need it.
    from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]  # plotly ships no types

    packed = gzip.compress(get_plotlyjs().encode(), compresslevel=9, mtime=0)
    return f'<script type="text/plain" id="plotly">{base64.b64encode(packed).decode()}</script>'
