"""A long history for benchmarks of judging: the sample run, many times beside each other and one after the other.

One workload of 120 to 210 replicas, with its autoscaler and its budget, over and over hit by the same fault: each copy
(a cell, in a round) has pods, nodes and gangs with names and uids of its own, deleted when its round is over. So
objects have the sizes and the order that a cluster gives them, and there are as many as a large cluster has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import zstandard

from harness.history.reader import History
from harness.history.seal import seal
from harness.history.tables import (
    FAULTS_FILE,
    LEDGER_FILE,
    MARKS_FILE,
    OBJECTS_FILE,
    REQUESTS_FILE,
    SAMPLES_FILE,
    ObjectEventType,
)

SAMPLE = Path(__file__).resolve().parents[1] / "reports" / "sample"
CELLS = 30
"""Copies beside each other: 30 times four to seven replicas, two gangs and up to five nodes."""
_SHARED = ("Deployment", "HorizontalPodAutoscaler", "PodDisruptionBudget", "ReplicaSet")
_AT = "\x00"
"""Stands in a template where a name or uid ends, and a copy's own suffix goes."""
_ROUND_NS_MARGIN = 2_000_000_000


def write(folder: Path, requests: int, events: int) -> None:
    """A run's folder with ``spec/`` and ``history/``, of at least so many requests and watch events."""
    sample = History.load(SAMPLE)
    seen = [event for event in sample.objects if event.type is not ObjectEventType.GAP]
    seen += [
        replace(e, index=len(seen), t_ns=seen[-1].t_ns + 1, type=ObjectEventType.DELETED)
        for e in {e.uid: e for e in seen if e.kind not in (*_SHARED, "Event")}.values()
        if e.type is not ObjectEventType.DELETED
    ]
    shared = sum(1 for e in seen if e.kind in _SHARED)  # told once a round, for all of its copies
    rounds = -(-events // ((len(seen) - shared) * CELLS + shared))
    span_ns = sample.run.load_end_ns - sample.run.load_start_ns + _ROUND_NS_MARGIN
    history = folder / "history"
    history.mkdir(parents=True)
    _copy_tree(SAMPLE / "spec", folder / "spec")
    own = [e for e in seen if e.kind not in _SHARED]
    marked = _marker({e.uid for e in own} | {e.name for e in own if e.kind != "Event"})
    copies = [(r, c) for r in range(rounds) for c in range(CELLS)]

    lines = []
    for e in seen:
        text = json.dumps({"kind": e.kind, "type": e.type.value, "object": e.object}, separators=(",", ":"))
        lines.append((e.t_ns, e.kind in _SHARED, marked(text)))
    count = _write_objects(history / OBJECTS_FILE, lines, rounds, span_ns)
    planned = _write_requests(history, sample.requests, copies, span_ns, requests)
    _write_samples(history / SAMPLES_FILE, sample.samples, marked, rounds, span_ns)
    _write_lines(history / FAULTS_FILE, SAMPLE / "history" / FAULTS_FILE, rounds, span_ns)
    _write_lines(history / MARKS_FILE, SAMPLE / "history" / MARKS_FILE, rounds, span_ns)
    _write_ledger(history / LEDGER_FILE, marked, planned)
    _write_run(history, sample, rounds, span_ns, planned, count)
    seal(history)


def _marker(names: set[str]) -> Callable[[str], str]:
    """Puts a mark behind each of the names, the longest that fits first."""
    pattern = re.compile("|".join(re.escape(name) for name in sorted(names, key=len, reverse=True) if name))
    return lambda text: pattern.sub(lambda match: match[0] + _AT, text)


def _suffix(round_: int, cell: int) -> str:
    return f"-{cell}x{round_}"


def _write_objects(path: Path, lines: list[tuple[int, bool, str]], rounds: int, span_ns: int) -> int:
    count = 0
    with path.open("wb") as file, zstandard.ZstdCompressor(level=3, write_checksum=True).stream_writer(file) as frame:
        for r in range(rounds):
            for t_ns, shared, text in lines:
                head = f'{{"t_ns":{t_ns + r * span_ns},{text[1:]}\n'
                for c in range(1 if shared else CELLS):
                    frame.write(head.replace(_AT, "" if shared else _suffix(r, c)).encode())
                    count += 1
    return count


def _write_requests(
    history: Path, table: pd.DataFrame, copies: list[tuple[int, int]], span_ns: int, wanted: int
) -> list[tuple[int, int, int]]:
    """Returns (round, cell, row of the sample) of each request."""
    times = [name for name in map(str, table) if name.endswith("_ns") and name not in ("gap_max_ns", "hang_up_ns")]
    repeats = max(1, -(-wanted // (len(copies) * len(table))))
    frames: list[pd.DataFrame] = []
    planned: list[tuple[int, int, int]] = []
    for number, (r, c) in enumerate(copies):
        for again in range(repeats):
            left = wanted - len(planned)
            # Spread evenly: the last copies are not to go without.
            share = max(0, min(len(table), -(-left // ((len(copies) - number) * repeats - again))))
            take = table.iloc[np.linspace(0, len(table) - 1, share).astype(int)]
            frame = take.assign(**{name: take[name] + r * span_ns + again for name in times})
            frames.append(frame.assign(pod=take["pod"] + _suffix(r, c), node=take["node"] + _suffix(r, c)))
            planned += [(r, c, int(i)) for i in take["request_id"]]
    whole = pd.concat(frames, ignore_index=True)
    whole["request_id"] = np.arange(len(whole))
    whole.to_parquet(history / REQUESTS_FILE, index=False, write_page_checksum=True)
    return planned


def _write_samples(path: Path, table: pd.DataFrame, marked: Callable[[str], str], rounds: int, span_ns: int) -> None:
    labels = table["labels"].map(marked)
    of_pods = labels.str.contains(_AT)
    frames: list[pd.DataFrame] = []
    for r in range(rounds):
        shifted = table.assign(t_ns=table["t_ns"] + r * span_ns)
        frames.append(shifted[~of_pods])
        frames += [
            shifted[of_pods].assign(labels=labels[of_pods].str.replace(_AT, _suffix(r, c), regex=False))
            for c in range(CELLS)
        ]
    pd.concat(frames, ignore_index=True).to_parquet(path, index=False, write_page_checksum=True)


def _write_lines(path: Path, source: Path, rounds: int, span_ns: int) -> None:
    """Faults and marks: once a round."""
    raws = [json.loads(line) for line in source.read_text().splitlines()]
    with path.open("w") as file:
        for r in range(rounds):
            for raw in raws:
                more = {"fault_id": f"{raw['fault_id']}.{r}"} if "fault_id" in raw else {}
                if raw.get("name") in ("load_start", "chaos_ready", "steady_state_before", "steady_state_after") and r:
                    continue
                file.write(json.dumps(raw | {"t_ns": raw["t_ns"] + r * span_ns} | more) + "\n")


def _write_ledger(path: Path, marked: Callable[[str], str], planned: list[tuple[int, int, int]]) -> None:
    of: dict[int, list[str]] = {}
    for line in (SAMPLE / "history" / LEDGER_FILE).read_text().splitlines():
        of.setdefault(int(json.loads(line)["id"].rpartition("-")[2]), []).append(marked(line))

    def lines() -> Iterator[str]:
        for request_id, (r, c, row) in enumerate(planned):
            for text in of.get(row, ()):
                own = text.replace(_AT, _suffix(r, c))
                yield re.sub(r'"chatcmpl-(\d+)-\d+"', rf'"chatcmpl-\g<1>-{request_id}"', own) + "\n"

    with path.open("w") as file:
        file.writelines(lines())


def _write_run(
    history: Path, sample: History, rounds: int, span_ns: int, planned: list[tuple[int, int, int]], events: int
) -> None:
    more_ns = (rounds - 1) * span_ns
    phases = tuple(
        replace(p, start_ns=p.start_ns + (more_ns if i == 3 else 0), end_ns=p.end_ns + (more_ns if i >= 2 else 0))
        for i, p in enumerate(sample.run.phases)
    )
    faults = tuple(f"{fault}.{r}" for r in range(rounds) for fault in sample.run.planned_faults)
    replace(
        sample.run,
        load_end_ns=sample.run.load_end_ns + more_ns,
        phases=phases,
        planned=len(planned),
        planned_faults=faults,
        object_events=events,
        sealed=True,
    ).write(history)


def _copy_tree(source: Path, target: Path) -> None:
    for path in source.rglob("*"):
        if path.is_file():
            (target / path.relative_to(source)).parent.mkdir(parents=True, exist_ok=True)
            (target / path.relative_to(source)).write_bytes(path.read_bytes())
