"""For all tests."""

from __future__ import annotations

import asyncio

# pytest-asyncio asks for the current event loop before each async test; without this, Python 3.11 makes one for it that
# nobody closes, and the warning of that loop's end would fail whichever test the collector happens to run in.
asyncio.set_event_loop(None)
