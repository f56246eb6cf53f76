"""Virtual loop time for tests that are not asynchronous themselves leaves a loop behind, unless this is said first."""

from __future__ import annotations

import asyncio


def pytest_configure() -> None:
    # looptime asks the policy for its loop before every test. Unless one was ever set, the policy then makes a loop
    # that nobody closes, and a later garbage collection blames whichever test is running.
    asyncio.set_event_loop(None)
