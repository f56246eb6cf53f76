from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.history.tables import Outcome
from harness.run.load.outcome import Ending, Facts, judge_outcome
from harness.run.load.stream import Meaning, Usage

WHOLE = Facts(max_tokens=8, status=200, event_stream=True, chunks=8, finish_reason="length", done=True)
WHOLE = replace(WHOLE, prompt_tokens=7, output_tokens=8, ending=Ending.COMPLETE)
EARLY = Facts(max_tokens=8, status=None)
PART: dict[str, Any] = {"finish_reason": None, "done": False, "output_tokens": None, "chunks": 3}


def whole(**changes: Any) -> Facts:
    return replace(WHOLE, **changes)


@pytest.mark.parametrize(
    "facts, outcome, says",
    [
        pytest.param(whole(), "ok", "", id="ok-length"),
        pytest.param(whole(finish_reason="stop"), "ok", "", id="ok-stop-at-the-exact-length"),
        pytest.param(whole(finish_reason="stop", output_tokens=3, ignore_eos=False), "ok", "", id="ok-stop-early"),
        pytest.param(whole(chunks=5), "ok", "", id="ok-merged-tokens"),
        pytest.param(whole(**PART), "truncated", "without finish_reason and [DONE] after 3", id="half-an-answer"),
        pytest.param(whole(**PART | {"chunks": 0}), "truncated", "after 0", id="nothing-but-a-clean-end"),
        pytest.param(whole(done=False), "truncated", "without [DONE]", id="no-done"),
        pytest.param(whole(finish_reason=None), "truncated", "without finish_reason", id="no-finish-reason"),
        pytest.param(whole(output_tokens=7), "truncated", "7 of 8", id="length-but-fewer"),
        pytest.param(whole(output_tokens=7, finish_reason="stop"), "truncated", "7 of 8", id="stop-despite-ignore-eos"),
        pytest.param(whole(output_tokens=7, ignore_eos=False), "truncated", "7 of 8", id="length-means-exactly"),
        pytest.param(whole(output_tokens=9), "protocol_error", "9 tokens", id="more-than-asked"),
        pytest.param(whole(output_tokens=None), "protocol_error", "no usage", id="no-usage"),
        pytest.param(whole(finish_reason="content_filter"), "protocol_error", "content_filter", id="odd-finish-reason"),
        pytest.param(whole(finish_reason="abort"), "aborted", "abort after 8", id="abort"),
        pytest.param(
            whole(finish_reason="abort", done=False, ending=Ending.CLOSED), "aborted", "", id="abort-then-cut"
        ),
        pytest.param(whole(**PART | {"error": "500 dead", "done": True}), "error_in_stream", "500 dead", id="error"),
        pytest.param(
            whole(**PART | {"error": "x", "ending": Ending.RESET}), "error_in_stream", "x", id="error-then-cut"
        ),
        pytest.param(whole(bad="not JSON: x"), "protocol_error", "not JSON", id="bad-event"),
        pytest.param(whole(**PART | {"ending": Ending.CLOSED}), "reset_mid_stream", "closed after 3", id="cut"),
        pytest.param(whole(**PART | {"ending": Ending.RESET}), "reset_mid_stream", "reset after 3", id="reset"),
        pytest.param(whole(ending=Ending.CLOSED), "reset_mid_stream", "after [DONE]", id="cut-before-the-final-chunk"),
        pytest.param(whole(**PART | {"ending": Ending.STALLED}), "stalled", "silent after 3", id="stalled"),
        pytest.param(whole(**PART | {"ending": Ending.NO_TOKEN}), "stalled", "no token", id="no-token"),
        pytest.param(whole(**PART | {"ending": Ending.DEADLINE}), "deadline", "deadline", id="deadline"),
        pytest.param(whole(**PART | {"ending": Ending.BAD_HTTP}), "protocol_error", "not HTTP", id="bad-http-later"),
        pytest.param(whole(**PART | {"ending": Ending.FAILED}), "protocol_error", "unforeseen", id="failed-later"),
        pytest.param(whole(**PART | {"ending": Ending.STOPPED}), "unfinished", "stopped", id="unfinished"),
        pytest.param(whole(**PART | {"ending": Ending.HUNG_UP}), "aborted_by_client", "by plan", id="hung-up"),
        pytest.param(
            whole(event_stream=False, body="{}", **PART),
            "protocol_error",
            "without an event stream: {}",
            id="no-stream",
        ),
        pytest.param(replace(EARLY, ending=Ending.REFUSED, detail="no"), "connect_refused", "no", id="refused"),
        pytest.param(replace(EARLY, ending=Ending.CONNECT_TIMEOUT), "connect_timeout", "in time", id="connect-timeout"),
        pytest.param(replace(EARLY, ending=Ending.CLOSED), "reset_before_headers", "closed", id="closed-first"),
        pytest.param(replace(EARLY, ending=Ending.RESET), "reset_before_headers", "reset", id="reset-first"),
        pytest.param(replace(EARLY, ending=Ending.NO_TOKEN), "stalled", "no token", id="no-headers"),
        pytest.param(replace(EARLY, ending=Ending.DEADLINE), "deadline", "deadline", id="no-headers-by-the-deadline"),
        pytest.param(replace(EARLY, ending=Ending.BAD_HTTP, detail="SSH"), "protocol_error", "SSH", id="not-http"),
        pytest.param(
            replace(EARLY, ending=Ending.FAILED, detail="EMFILE"), "protocol_error", "EMFILE", id="unforeseen"
        ),
        pytest.param(EARLY, "protocol_error", "before it ended", id="no-ending"),
        pytest.param(
            replace(EARLY, status=404, body="no model", ending=Ending.COMPLETE), "http_4xx", "404 no", id="404"
        ),
        pytest.param(replace(EARLY, status=429, ending=Ending.COMPLETE), "http_429", "429", id="429"),
        pytest.param(replace(EARLY, status=500, ending=Ending.CLOSED), "http_5xx", "500", id="500-cut"),
        pytest.param(replace(EARLY, status=503, ending=Ending.COMPLETE), "http_5xx", "503", id="503"),
        pytest.param(replace(EARLY, status=302, ending=Ending.COMPLETE), "protocol_error", "302", id="redirect"),
        pytest.param(replace(EARLY, status=204, ending=Ending.COMPLETE), "protocol_error", "204", id="no-content"),
    ],
)
def test_every_exchange_has_one_outcome(facts: Facts, outcome: str, says: str) -> None:
    judged, reason = judge_outcome(facts)
    assert judged == Outcome(outcome)
    assert says in reason
    assert (reason == "") is (judged is Outcome.OK)


def test_the_table_shows_every_outcome_of_a_sent_request() -> None:
    table: Any = test_every_exchange_has_one_outcome
    shown = {param.values[1] for mark in table.pytestmark for param in mark.args[1]}
    assert shown == set(Outcome) - {Outcome.NOT_SENT}


def test_facts_keep_the_first_error_and_the_last_usage() -> None:
    facts = Facts(max_tokens=8)
    for meaning in (
        Meaning(content=True, usage=Usage(7, 1)),
        Meaning(error="first", error_code=500),
        Meaning(error="second"),
        Meaning(bad="odd"),
        Meaning(bad="odder"),
        Meaning(finish_reason="length", usage=Usage(7, 2)),
        Meaning(done=True),
    ):
        facts.take(meaning)
    assert (facts.error, facts.bad, facts.output_tokens, facts.chunks) == ("500 first", "odd", 2, 1)
    assert facts.done and facts.answered
