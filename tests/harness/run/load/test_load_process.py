"""The real Locust process against a scripted server: every arrival ends once, and it stops when it must."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sse_server import SCRIPTS, SseServer

from harness.clock import NS_PER_MS, NS_PER_S, RunClock, monotonic_ns
from harness.history.requests import build_requests
from harness.history.tables import REQUEST_COLUMNS, Phase
from harness.run.load import settings as load_settings

LOCUSTFILE = str(Path(load_settings.__file__).with_name("locustfile.py"))
START_WITHIN_S = 30


class LoadRun:
    """One load process, started the way the supervisor starts it."""

    def __init__(self, tmp_path: Path, url: str, schedule: pd.DataFrame, **send: float) -> None:
        self.clock = RunClock(monotonic_ns())
        self.schedule = schedule
        self.records_path = tmp_path / "load" / "records.jsonl"
        self.records_path.parent.mkdir()
        schedule.to_parquet(tmp_path / "schedule.parquet", index=False)
        limits = {
            "connect_timeout_s": 1,
            "first_token_timeout_s": 0.5,
            "stall_timeout_s": 0.3,
            "deadline_s": 1.0,
        } | send
        api = {"url": url, "model": "tiny"}
        settings: dict[str, Any] = {"schedule": str(tmp_path / "schedule.parquet"), "api": api, "seed": 11}
        settings |= {"records": str(self.records_path), "start_ns": self.clock.start_ns, "send": limits}
        path = tmp_path / "load" / "load.json"
        path.write_text(json.dumps(settings))
        read_fd, self.pipe_fd = os.pipe()
        env = os.environ | {"GPU_HARNESS_LOAD": str(path), "GPU_HARNESS_PARENT_FD": str(read_fd)}
        self.log = (tmp_path / "locust.log").open("wb+")
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-m", "locust", "-f", LOCUSTFILE, "--headless", "--only-summary"],
                env=env | {load_settings.WORKER_ENV: str(worker)},
                cwd=tmp_path,
                stdin=subprocess.DEVNULL,
                stdout=self.log,
                stderr=self.log,
                pass_fds=(read_fd,),
                start_new_session=True,
            )
            for worker in range(int(send.get("workers", 1)))
        ]
        self.process = self.processes[0]
        os.close(read_fd)
        self.load_start_ns = 0

    def wait_for(
        self, what: str, holds: Callable[[list[dict[str, Any]]], bool], within_s: float = START_WITHIN_S
    ) -> None:
        until = time.monotonic() + within_s
        while not holds(self.records()):
            assert self.process.poll() is None, f"ended before {what}: {self.output()}"
            assert time.monotonic() < until, f"no {what} in {within_s} s: {self.output()}"
            time.sleep(0.01)

    def go(self, in_s: float = 0.05) -> None:
        self.wait_for("ready", lambda records: sum(r["e"] == "ready" for r in records) == len(self.processes))
        self.load_start_ns = self.clock.now_ns() + round(in_s * NS_PER_S)
        part = self.records_path.with_name("go.part")
        part.write_text(str(self.load_start_ns))
        part.rename(self.records_path.with_name("go"))

    def records(self) -> list[dict[str, Any]]:
        if not self.records_path.exists():
            return []
        return [
            json.loads(line) for line in self.records_path.read_text().splitlines(keepends=True) if line.endswith("\n")
        ]

    def requests(self) -> pd.DataFrame:
        return build_requests(self.schedule, self.records_path, (Phase("steady", self.load_start_ns, 1 << 62),))

    def output(self) -> str:
        self.log.seek(0)
        return self.log.read().decode()

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        self.log.close()
        if self.pipe_fd >= 0:
            os.close(self.pipe_fd)


def arrivals(count: int, every_ms: int, tokens: int = 4) -> pd.DataFrame:
    columns: dict[str, Any] = {"t_ns": [i * every_ms * NS_PER_MS for i in range(count)], "prompt_tokens": [9] * count}
    columns |= {"output_tokens": [tokens] * count, "tenant": ["blue"] * count, "session": [""] * count}
    return pd.DataFrame(columns)


Start = Callable[..., LoadRun]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    runs: list[LoadRun] = []

    def begin(url: str, schedule: pd.DataFrame, **send: float) -> LoadRun:
        runs.append(LoadRun(tmp_path, url, schedule, **send))
        return runs[-1]

    yield begin
    for run in runs:
        run.close()


EXPECTED = {
    "ok": "ok", "until_close": "ok", "short": "truncated", "no_done": "truncated", "fewer_by_usage": "truncated",
    "abort": "aborted", "error": "error_in_stream", "cut": "reset_mid_stream", "reset": "reset_mid_stream",
    "reset_first": "reset_before_headers", "close_first": "reset_before_headers", "stall": "stalled", "mute": "stalled",
    "drip": "deadline", "not_json": "protocol_error", "not_http": "protocol_error", "no_stream": "protocol_error",
    "busy": "http_429", "unavailable": "http_5xx", "unknown_model": "http_4xx", "moved": "protocol_error",
}  # fmt: skip
TIMES = (
    "intended_ns", "sent_ns", "connected_ns", "headers_ns", "first_chunk_ns", "first_token_ns", "last_token_ns",
    "end_ns",
)  # fmt: skip


def test_every_arrival_goes_out_at_its_time_and_ends_once_as_it_did(start: Start) -> None:
    assert set(EXPECTED) <= set(SCRIPTS)
    with SseServer(cycle=tuple(EXPECTED)) as server:
        run = start(server.url, arrivals(2 * len(EXPECTED), every_ms=25))
        run.go()
        assert run.process.wait(START_WITHIN_S) == 0, run.output()
    records = run.records()
    assert records[0]["e"] == "ready" and records[-1]["e"] == "finished"
    assert [r["id"] for r in records if r["e"] == "sent"] == list(range(2 * len(EXPECTED)))
    ends = [r for r in records if r["e"] == "end"]
    assert sorted(r["id"] for r in ends) == list(range(2 * len(EXPECTED)))
    assert {k for r in ends for k in r} - {"e", "id"} == set(REQUEST_COLUMNS) - {"phase"}
    table = run.requests()
    assert dict(zip(EXPECTED, table["outcome"], strict=False)) == EXPECTED
    assert table["outcome"][: len(EXPECTED)].tolist() == table["outcome"][len(EXPECTED) :].tolist()
    ok = table.iloc[0]
    assert (ok["chunks"], ok["output_tokens"], ok["prompt_tokens"], ok["done"], ok["status"]) == (4, 4, 7, True, 200)
    assert (ok["pod"], ok["node"], ok["finish_reason"], ok["tenant"]) == ("llm-0", "spot-1", "length", "blue")
    times = [int(ok[column]) for column in TIMES]
    assert times == sorted(times)
    assert 0 < ok["gap_max_ns"] <= ok["last_token_ns"] - ok["first_token_ns"]
    assert table["reused"].any() and server.connections < len(table)
    assert {r["cpu_ratio"] >= 0 and r["in_flight"] >= 0 for r in records if r["e"] == "health"} == {True}
    assert sorted(server.request_ids, key=lambda i: int(i[3:])) == [f"11-{i}" for i in range(len(table))]
    body = server.bodies[0]
    assert len(body["messages"][0]["content"].split()) == 9
    assert {k: body[k] for k in ("model", "stream", "stream_options", "ignore_eos", "max_tokens")} == {
        "model": "tiny", "stream": True, "stream_options": {"include_usage": True}, "ignore_eos": True, "max_tokens": 4,
    }  # fmt: skip


def test_a_refused_connection_is_an_outcome_and_no_failure_of_the_load(start: Start) -> None:
    with SseServer() as server:
        url = server.url
    run = start(url, arrivals(3, every_ms=5))
    run.go()
    assert run.process.wait(START_WITHIN_S) == 0, run.output()
    assert run.requests()["outcome"].tolist() == ["connect_refused"] * 3


@pytest.mark.parametrize("how", ["SIGTERM", "the parent's death"])
def test_told_to_stop_it_closes_the_account_within_two_seconds(start: Start, how: str) -> None:
    with SseServer(cycle=("drip",)) as server:
        run = start(server.url, arrivals(200, every_ms=100), deadline_s=60)
        run.go()
        run.wait_for("three sent", lambda records: sum(r["e"] == "sent" for r in records) >= 3)
        asked = time.monotonic()
        if how == "SIGTERM":
            run.process.send_signal(signal.SIGTERM)
        else:
            os.close(run.pipe_fd)
            run.pipe_fd = -1
        assert run.process.wait(10) == 0, run.output()
        took_s = time.monotonic() - asked
    assert took_s < 2
    assert run.records()[-1]["e"] == "finished"
    outcomes = run.requests()["outcome"].value_counts().to_dict()
    assert set(outcomes) == {"unfinished", "not_sent"} and sum(outcomes.values()) == 200
    assert outcomes["unfinished"] == sum(r["e"] == "sent" for r in run.records())


def test_stopped_before_it_was_let_go(start: Start) -> None:
    run = start("http://127.0.0.1:9", arrivals(3, every_ms=5))
    run.wait_for("ready", bool)
    run.process.send_signal(signal.SIGTERM)
    assert run.process.wait(10) == 0, run.output()
    assert [r["e"] for r in run.records()] == ["ready", "finished"]
    assert run.requests()["outcome"].tolist() == ["not_sent"] * 3


def test_a_stopped_process_sends_late_but_sends_all(start: Start) -> None:
    with SseServer(cycle=("ok",)) as server:
        run = start(server.url, arrivals(40, every_ms=20))
        run.go()
        run.wait_for("five ends", lambda records: sum(r["e"] == "end" for r in records) >= 5)
        os.kill(run.process.pid, signal.SIGSTOP)
        time.sleep(0.7)  # longer than the stall and first-token limits: what waits in the sockets must still count
        os.kill(run.process.pid, signal.SIGCONT)
        assert run.process.wait(START_WITHIN_S) == 0, run.output()
    table = run.requests()
    assert table["outcome"].tolist() == ["ok"] * 40
    assert (table["sent_ns"] - table["intended_ns"]).max() > 400 * NS_PER_MS


def test_several_processes_share_a_schedule_and_a_dead_one_s_rows_are_not_sent(start: Start) -> None:
    schedule = arrivals(120, every_ms=20).assign(session=[f"s{i // 3}" if i % 2 else "" for i in range(120)])
    schedule = schedule.assign(turn=0, priority=0, stream=1, hang_up_tokens=0, hang_up_ns=0, prefix="")
    with SseServer(cycle=("ok",)) as server:
        run = start(server.url, schedule, workers=2)
        run.go()
        run.wait_for("twenty ends", lambda records: sum(r["e"] == "end" for r in records) >= 20)
        run.processes[1].kill()
        assert run.process.wait(START_WITHIN_S) == 0, run.output()
    shares = [load_settings.Share(index, 2) for index in range(2)]
    table = run.requests()
    ours = [shares[0].has(i, session) for i, session in enumerate(schedule["session"])]
    theirs = [shares[1].has(i, session) for i, session in enumerate(schedule["session"])]
    assert all(a != b for a, b in zip(ours, theirs, strict=True)) and min(sum(ours), sum(theirs)) > 40
    sent = [r["id"] for r in run.records() if r["e"] == "sent"]
    assert len(sent) == len(set(sent))
    assert set(table[ours]["outcome"]) <= {"ok", "not_sent"} and (table[ours]["reason"].fillna("") != "").sum() < 20
    lost = table[theirs]["outcome"].value_counts().to_dict()
    assert lost["not_sent"] > 10 and set(lost) <= {"ok", "not_sent", "unfinished"}


SMALL_PROFILE = (
    "title: small\nduration_s: 2\nlongest_stream_s: 1\n"
    "arrivals: {kind: constant, rate_per_s: 20}\n"
    "tokens: {prompt: {kind: fixed, tokens: 20}, output: {kind: fixed, tokens: 3}}\n"
)


def plain_locust(folder: Path, url: str, *flags: str) -> tuple[list[str], dict[str, str]]:
    """As a person starts it who knows Locust: the command and its environment."""
    (folder / "profile.yaml").write_text(SMALL_PROFILE)
    command = [sys.executable, "-m", "locust", "-f", LOCUSTFILE, "--only-summary", *flags]
    command += ["--host", url, "--load-profile", "profile.yaml", "--model", "tiny", "--records", "out"]
    return command, {k: v for k, v in os.environ.items() if k != load_settings.LOAD_ENV}


def expect_all_sent_once(folder: Path, server: SseServer) -> None:
    ends = [
        record
        for records in (folder / "out").glob("*/records*.jsonl")
        for record in map(json.loads, records.read_text().splitlines())
        if record["e"] == "end"
    ]
    assert sorted(r["id"] for r in ends) == list(range(40)) == list(range(len(server.bodies)))
    assert {r["outcome"] for r in ends} == {"ok"}


@pytest.mark.parametrize("flags", [(), ("--processes", "2")], ids=["one", "distributed"])
def test_plain_locust_sends_a_profile(tmp_path: Path, flags: tuple[str, ...]) -> None:
    with SseServer(cycle=("ok",)) as server:
        command, env = plain_locust(tmp_path, server.url, "--headless", *flags)
        done = subprocess.run(
            command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=90, stdin=subprocess.DEVNULL
        )
    assert done.returncode == 0, done.stderr
    expect_all_sent_once(tmp_path, server)
    assert "LLM" in done.stdout + done.stderr


def test_a_person_starts_it_from_the_web_page(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with SseServer(cycle=("ok",)) as server:
        command, env = plain_locust(tmp_path, server.url, "--web-host", "127.0.0.1", "--web-port", str(port))
        process = subprocess.Popen(command, env=env, cwd=tmp_path, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            page = f"http://127.0.0.1:{port}"
            eventually("the page is there", lambda: "locust" in (asked(page) or "").lower())
            assert not server.bodies  # it waits for the person
            began = asked(f"{page}/swarm", b"user_count=1&spawn_rate=1")
            assert began is not None and json.loads(began)["success"]
            eventually("the test is over", lambda: json.loads(stats(page))["state"] == "stopped")
            table = {row["name"]: row for row in json.loads(stats(page))["stats"]}
            assert (table["chat"]["num_requests"], table["chat"]["num_failures"]) == (40, 0)
            assert process.poll() is None  # the page stays, to be read
        finally:
            process.terminate()
            process.wait(START_WITHIN_S)
    expect_all_sent_once(tmp_path, server)


def asked(url: str, form: bytes | None = None) -> str | None:
    try:
        with urllib.request.urlopen(url, form, timeout=5) as answer:
            return str(answer.read().decode())
    except OSError:
        return None


def stats(page: str) -> str:
    return asked(f"{page}/stats/requests") or '{"state": "unknown"}'


def eventually(what: str, holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 3 * START_WITHIN_S
    while not holds():
        assert time.monotonic() < until, f"waited in vain: {what}"
        time.sleep(0.2)


def test_plain_locust_is_told_what_is_missing(tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if k != load_settings.LOAD_ENV}
    command = [sys.executable, "-m", "locust", "-f", LOCUSTFILE, "--headless"]
    done = subprocess.run(
        command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 64
    assert (
        "no load profile was named" in done.stderr
        and "--load-profile" in done.stderr
        and "Traceback" not in done.stderr
    )


def test_an_unreadable_schedule_ends_the_load_with_one_message(start: Start, tmp_path: Path) -> None:
    run = start("http://127.0.0.1:9", arrivals(1, every_ms=5).drop(columns="session"))
    assert run.process.wait(START_WITHIN_S) == 64, run.output()
    assert "the schedule cannot be read" in run.output()


def test_turns_whole_answers_and_hang_ups(start: Start) -> None:
    """Each row as its schedule says; ``drip`` and ``mute`` never end by themselves."""
    rows: list[tuple[str, dict[str, Any], str, str]] = [
        ("ok", {"stream": 0, "priority": -2}, "ok", ""),
        ("drip", {"hang_up_tokens": 3}, "aborted_by_client", "hung up by plan: after"),
        ("mute", {"hang_up_ns": 150 * NS_PER_MS}, "aborted_by_client", "hung up by plan: waited 0.15 s"),
        ("drip", {"hang_up_ns": 150 * NS_PER_MS}, "aborted_by_client", "hung up by plan"),
        ("mute", {"stream": 0, "hang_up_ns": 90 * NS_PER_MS}, "aborted_by_client", "hung up by plan"),
        ("mute", {"stream": 0}, "deadline", ""),
        ("drip", {"session": "a", "turn": 1, "prefix": "p:4+a:5"}, "deadline", ""),
        ("ok", {"session": "a", "turn": 2, "prefix": "p:4+a:8"}, "not_sent", "session"),
        ("ok", {"session": "b", "turn": 1, "prefix": "p:4+b:5"}, "ok", ""),
        ("ok", {"hang_up_tokens": 400}, "ok", ""),
        ("ok", {"session": "b", "turn": 2, "prefix": "p:4+b:5"}, "ok", ""),
        ("ok", {"session": "a", "turn": 3, "prefix": "p:4+a:8"}, "not_sent", "session"),
    ]
    schedule = arrivals(len(rows), every_ms=60).assign(
        turn=0, priority=0, stream=1, hang_up_tokens=0, hang_up_ns=0, prefix=""
    )
    for index, (_, cells, _, _) in enumerate(rows):
        for name, value in cells.items():
            schedule.loc[index, name] = value
    schedule.loc[10:, "t_ns"] = [1_900 * NS_PER_MS, 2_000 * NS_PER_MS]  # when all that was sent has ended
    with SseServer(cycle=tuple(script for script, _, _, _ in rows)) as server:
        run = start(server.url, schedule)
        run.go()
        assert run.process.wait(START_WITHIN_S) == 0, run.output()
    table = run.requests()
    assert table["outcome"].tolist() == [outcome for _, _, outcome, _ in rows]
    for (_, _, _, says), reason in zip(rows, table["reason"].fillna(""), strict=True):
        assert says in reason
    assert table["sent_ns"].isna().tolist() == [outcome == "not_sent" for _, _, outcome, _ in rows]
    whole = table.iloc[0]
    assert (whole["output_tokens"], whole["chunks"], bool(whole["stream"]), whole["priority"]) == (4, 0, False, -2)
    assert pd.isna(whole["first_token_ns"]) and whole["end_ns"] >= whole["headers_ns"] > whole["sent_ns"]
    assert table["turn"].tolist() == [0] * 6 + [1, 2, 1, 0, 2, 3]
    hung_up = table.iloc[1]
    assert 3 <= hung_up["chunks"] < 20 and hung_up["hang_up_tokens"] == 3
    lasted_ms = ((table["end_ns"] - table["sent_ns"]) / NS_PER_MS).iloc[[2, 3]]
    assert (lasted_ms >= 150).all() and (lasted_ms < 900).all()
    prompts = {
        request_id: body["messages"][0]["content"]
        for request_id, body in zip(server.request_ids, server.bodies, strict=True)
    }
    assert prompts["11-8"] == prompts["11-10"] and prompts["11-8"][:9] == prompts["11-6"][:9]
    assert next(b for i, b in zip(server.request_ids, server.bodies, strict=True) if i == "11-0")["stream"] is False
