"""Keeps looptime from leaving an event loop behind.

For every test that is not async it asks asyncio for the current loop, which makes one that nobody closes; the garbage
collector then fails whatever test runs at that moment. After this line there is none to be made.
"""

from __future__ import annotations

import asyncio

asyncio.set_event_loop(None)
