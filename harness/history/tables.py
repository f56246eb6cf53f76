"""The recorded run as typed tables: names, columns and units of every file under ``history/``.

Times are integer nanoseconds of the run's clock (``harness.clock``), null where a thing did not happen.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

REQUESTS_FILE = "requests.parquet"
ATTEMPTS_FILE = "attempts.parquet"
"""Attempts that were followed by another, in the columns of the requests; only where there are some."""
OBJECTS_FILE = "objects.jsonl.zst"
SAMPLES_FILE = "samples.parquet"
FAULTS_FILE = "faults.jsonl"
MARKS_FILE = "marks.jsonl"
RUN_FILE = "run.json"
LEDGER_FILE = "ledger.jsonl"
"""Kept by fake model servers only; a run on real ones has none."""

WALL_CLOCK_MARK = "wall_clock"
"""The recorder's time of day (ISO 8601, UTC) at that moment of the run's clock; at its start and at its end."""
VERSION_MARK = "kubernetes_version"
"""What the API server's ``/version`` said at that moment."""
SERVER_TIME_MARK = "server_time"
"""The API server's time of day as it stood in that answer (ISO 8601, UTC, whole seconds); ``detail`` is how many clock
seconds the answer took to come."""
FAILED_MARK = "recorder_failed"
"""A part of the recorder ended with an error: ``value`` is the error's class, ``detail`` its words."""

RECORDED_KINDS: tuple[str, ...] = (
    "Pod", "Node", "Deployment", "ReplicaSet", "HorizontalPodAutoscaler", "PodDisruptionBudget", "EndpointSlice",
    "PodGroup", "NodeClaim", "Event",
)  # fmt: skip
"""Kinds of the objects that the recorder watches, as they stand in ``ObjectEvent.kind``."""


class Outcome(enum.StrEnum):
    """How a scheduled arrival ended. Every arrival has exactly one (design, 4.3)."""

    OK = "ok"
    TRUNCATED = "truncated"
    ABORTED = "aborted"
    ABORTED_BY_CLIENT = "aborted_by_client"
    ERROR_IN_STREAM = "error_in_stream"
    HTTP_4XX = "http_4xx"
    HTTP_429 = "http_429"
    HTTP_5XX = "http_5xx"
    CONNECT_REFUSED = "connect_refused"
    CONNECT_TIMEOUT = "connect_timeout"
    RESET_BEFORE_HEADERS = "reset_before_headers"
    RESET_MID_STREAM = "reset_mid_stream"
    STALLED = "stalled"
    DEADLINE = "deadline"
    PROTOCOL_ERROR = "protocol_error"
    UNFINISHED = "unfinished"
    NOT_SENT = "not_sent"


CUT: frozenset[Outcome] = frozenset(
    {
        Outcome.TRUNCATED, Outcome.ABORTED, Outcome.ERROR_IN_STREAM, Outcome.RESET_BEFORE_HEADERS,
        Outcome.RESET_MID_STREAM, Outcome.STALLED, Outcome.DEADLINE, Outcome.PROTOCOL_ERROR, Outcome.UNFINISHED,
        Outcome.HTTP_5XX,
    }
)  # fmt: skip
"""Ends of a sent request that lost (part of) its answer, whatever the cause."""

REQUEST_COLUMNS: dict[str, str] = {
    "request_id": "int64",  # row of the schedule
    "attempt": "int64",  # 1; more only where the profile allows recorded retries
    "intended_ns": "int64",  # when the schedule wanted it sent
    "sent_ns": "Int64",  # when it was sent; null for what never was
    "connected_ns": "Int64",  # equal to sent_ns on a reused connection
    "headers_ns": "Int64",  # when the response headers came
    "first_chunk_ns": "Int64",  # first SSE event of any kind
    "first_token_ns": "Int64",  # first event with non-empty content
    "last_token_ns": "Int64",  # last event with content
    "end_ns": "Int64",  # when its outcome was certain
    "chunks": "int64",  # events with content (a chunk may carry several tokens)
    "gap_max_ns": "Int64",  # largest gap between two content events
    "planned_prompt_tokens": "int64",  # by the schedule
    "planned_output_tokens": "int64",  # max_tokens of the request, with ignore_eos
    "prompt_tokens": "Int64",  # usage, as the server reported it
    "output_tokens": "Int64",  # usage, too
    "finish_reason": "string",  # stop, length, abort, or what else the server said
    "done": "bool",  # whether data: [DONE] came
    "status": "Int64",  # HTTP status
    "pod": "string",  # from the response header x-serving-pod
    "node": "string",  # from the response header x-serving-node
    "reused": "bool",  # sent on a connection that had carried a request before
    "tenant": "string",  # by the load profile
    "session": "string",  # which conversation; empty where there is none
    "turn": "Int64",  # from 1 within a session; 0 where there is none. This one and the next five: null in old runs
    "prefix": "string",  # the prompt's shared beginning, name:tokens+name:tokens
    "priority": "Int64",  # of its tenant
    "stream": "boolean",  # false: the answer was asked for in one piece, so it has no chunks and no token times
    "hang_up_tokens": "Int64",  # the client was to hang up after so many tokens; 0 never
    "hang_up_ns": "Int64",  # or so long after the send; 0 never
    "outcome": "string",  # how it ended: one of the outcomes below
    "reason": "string",  # free text behind the outcome
    "phase": "string",  # by intended_ns
}

SAMPLE_COLUMNS: dict[str, str] = {
    "t_ns": "int64",  # when it was read
    "source": "string",  # gateway, custom.metrics, load, or machine
    "name": "string",  # of the metric, as its source calls it
    "labels": "string",  # canonical JSON: equal label sets are equal texts
    "value": "float64",  # in the metric's own unit
}


class ObjectEventType(enum.StrEnum):
    """LISTED: present in a list (start, or after a gap). GAP: the recorder was blind for this resource from
    ``since_ns`` until ``t_ns``. The others are watch events."""

    LISTED = "LISTED"
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    GAP = "GAP"


@dataclass(frozen=True, slots=True)
class ObjectEvent:
    """One line of objects.jsonl.zst. ``index`` is its line number from 0, used as evidence ``objects:<index>``."""

    index: int
    t_ns: int
    kind: str
    type: ObjectEventType
    object: dict[str, Any] = field(default_factory=dict)
    since_ns: int | None = None
    reason: str | None = None

    @property
    def name(self) -> str:
        return str(self.object.get("metadata", {}).get("name", ""))

    @property
    def namespace(self) -> str:
        return str(self.object.get("metadata", {}).get("namespace", ""))

    @property
    def uid(self) -> str:
        return str(self.object.get("metadata", {}).get("uid", ""))


class FaultStage(enum.StrEnum):
    PLANNED = "planned"  # targets picked
    INJECTED = "injected"  # the change was made
    OBSERVED = "observed"  # it took effect, seen by other means than the injection
    NOT_OBSERVED = "not_observed"  # it should have by now and did not
    ENDED = "ended"  # its own course is over: the instance is gone, the pause resumed
    HEALING = "healing"
    HEALED = "healed"
    HEAL_OBSERVED = "heal_observed"  # its effect is gone, seen as it was seen to come
    HEAL_NOT_OBSERVED = "heal_not_observed"  # undone, but the effect still showed
    FAILED = "failed"  # a step raised; ``detail`` has the error


@dataclass(frozen=True, slots=True)
class FaultEvent:
    """One line of faults.jsonl. ``fault_id`` names one injection of the run (``spot_interruption-1``)."""

    index: int
    t_ns: int
    """When the step was taken."""
    fault_id: str
    """One injection of the run."""
    fault: str
    """Its kind."""
    stage: FaultStage
    """Which step, see below."""
    targets: tuple[str, ...] = ()
    """Whom it hit."""
    fidelity: str = ""
    """native or emulated."""
    detail: str = ""
    """What was seen, or the error."""
    disruptive: bool = True
    """False for things like a workload that arrives by plan: they open no ``fault`` phase."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One answer that a fake model server began, by its own book. ``index`` is the line by which it was opened.

    ``closed`` is False where the book ends before the server was through with it: then what it sent is not known.
    """

    index: int
    pod: str
    request: str
    """The id by which the client called it (its X-Request-Id)."""
    prompt_tokens: int
    closed: bool = False
    sent_tokens: int = 0
    sent_events: int = 0
    finish: str | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """One line of marks.jsonl: what the supervisor did or noticed, e.g. name ``phase`` with value ``fault``."""

    index: int
    t_ns: int
    """When."""
    name: str
    """What."""
    value: str = ""
    """A word about it."""
    detail: str = ""
    """More words."""


@dataclass(frozen=True, slots=True)
class Phase:
    """``warm_up``, ``steady``, ``fault`` or ``recovery``, [start_ns, end_ns)."""

    name: str
    start_ns: int
    end_ns: int
