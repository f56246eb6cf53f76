from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest
from flaky_kube import FlakyKube, LoopClock

from harness.errors import TargetError
from harness.history.reader import History
from harness.history.tables import SERVER_TIME_MARK, VERSION_MARK, WALL_CLOCK_MARK, ObjectEvent, ObjectEventType
from harness.history.writer import HistoryWriter
from harness.kube.port import DEPLOYMENT, NAMESPACE, POD, Json
from harness.run.record.recorder import Recorder
from harness.targets.base import Connection

pytestmark = pytest.mark.looptime
S = 1_000_000_000


CONNECTION = Connection("kubeconfig", Path("kubeconfig"), "http://127.0.0.1:1", None, "inference", 1)


@dataclass(frozen=True)
class Workload:
    namespace: str = "inference"
    selector: str = "app=llm"


def pod(name: str) -> Json:
    return {"metadata": {"name": name, "labels": {"app": "llm"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


class Recording:
    """A recorder on a cluster that can be broken, and what it has written so far."""

    def __init__(self, run_dir: Path, connection: Connection | None = None) -> None:
        self.run_dir = run_dir
        self.kube = FlakyKube()
        self.writer = HistoryWriter(run_dir / "history")
        self.recorder = Recorder(self.kube, LoopClock(), self.writer, connection, Workload())

    async def add(self, name: str) -> None:
        await self.kube.create(POD, pod(name), "inference")

    async def begin_with_a_pod(self) -> None:
        await self.kube.create(NAMESPACE, {"metadata": {"name": "inference"}})
        await self.add("first")
        await self.recorder.start()

    async def unheard(self, pod: str) -> History:
        """The server freezes, gets a pod, and answers again after longer than it may be silent."""
        self.kube.freeze()
        await self.add(pod)
        await asyncio.sleep(100)
        self.kube.thaw()
        await asyncio.sleep(1)
        return await self.finish()

    async def finish(self) -> History:
        await self.recorder.stop()
        self.writer.close()
        return History.load(self.run_dir)


@pytest.fixture
async def recording(tmp_path: Path) -> AsyncIterator[Recording]:
    recording = Recording(tmp_path)
    await recording.kube.create(NAMESPACE, {"metadata": {"name": "inference"}})
    await recording.add("first")
    yield recording
    await recording.recorder.stop()
    recording.writer.close()


def pods(history: History) -> list[tuple[str, str]]:
    return [(e.type.value, e.name) for e in history.objects if e.kind == "Pod"]


def gaps(history: History, kind: str = "Pod") -> list[ObjectEvent]:
    return [g for g in history.gaps if g.kind == kind]


async def test_lists_first_and_then_follows(recording: Recording) -> None:
    await recording.recorder.start()
    await asyncio.sleep(1)
    await recording.add("second")
    await recording.kube.delete(POD, "second", "inference", grace_s=0)
    await asyncio.sleep(1)
    history = await recording.finish()
    assert pods(history)[:2] == [("LISTED", "first"), ("ADDED", "second")]
    assert pods(history)[-1] == ("DELETED", "second")
    added = next(e for e in history.objects if e.name == "second")
    assert round(added.t_ns / S) == 1
    assert gaps(history) == []
    assert all("managedFields" not in e.object.get("metadata", {}) for e in history.objects)


async def test_a_watch_that_breaks_and_resumes_is_no_gap(recording: Recording) -> None:
    await recording.recorder.start()
    lists = recording.kube.lists
    for name in ("second", "third"):
        recording.kube.cut_watches()
        await recording.add(name)
        await asyncio.sleep(1)
    assert recording.kube.lists == lists
    history = await recording.finish()
    assert pods(history) == [("LISTED", "first"), ("ADDED", "second"), ("ADDED", "third")]
    assert gaps(history) == []


async def test_an_absence_shorter_than_a_second_is_bridged(recording: Recording) -> None:
    await recording.recorder.start()
    await asyncio.sleep(2)
    recording.kube.go_down()
    await recording.add("second")
    await asyncio.sleep(0.7)
    recording.kube.come_up()
    await asyncio.sleep(2)
    history = await recording.finish()
    assert pods(history) == [("LISTED", "first"), ("ADDED", "second")]
    assert gaps(history) == []


async def test_a_longer_absence_is_a_gap_from_the_break_to_the_new_list(recording: Recording) -> None:
    await recording.recorder.start()
    await asyncio.sleep(2)
    recording.kube.go_down()
    await recording.add("second")
    await asyncio.sleep(5)
    recording.kube.come_up()
    await asyncio.sleep(1)
    await recording.add("third")
    await asyncio.sleep(1)
    history = await recording.finish()
    assert pods(history) == [
        ("LISTED", "first"),
        ("GAP", ""),
        ("LISTED", "first"),
        ("LISTED", "second"),
        ("ADDED", "third"),
    ]
    gap = gaps(history)[0]
    assert gap.since_ns == 2 * S and 7 * S <= gap.t_ns <= 7.3 * S
    assert "could not be reached" in (gap.reason or "")
    assert gaps(history, "Node")


async def test_an_absence_at_the_end_is_a_gap_too(recording: Recording) -> None:
    await recording.recorder.start()
    await asyncio.sleep(2)
    recording.kube.go_down()
    await asyncio.sleep(4)
    history = await recording.finish()
    assert [(g.since_ns, g.t_ns) for g in gaps(history)] == [(2 * S, 6 * S)]


async def test_a_server_that_freezes_while_connected_is_a_gap(tmp_path: Path) -> None:
    recording = Recording(tmp_path, CONNECTION)
    recording.kube.bookmark_s = CONNECTION.bookmark_s
    await recording.begin_with_a_pod()
    await asyncio.sleep(150)  # quiet, but bookmarks come
    history = await recording.unheard("second")
    assert pods(history) == [("LISTED", "first"), ("GAP", ""), ("LISTED", "first"), ("LISTED", "second")]
    gap = gaps(history)[0]
    assert round((gap.since_ns or 0) / S) == 120 and gap.t_ns == 250 * S
    assert "said nothing for 92 s, not even a bookmark" in (gap.reason or "")


async def test_a_server_without_bookmarks_of_what_never_changed_is_no_gap(tmp_path: Path) -> None:
    recording = Recording(tmp_path, CONNECTION)
    await recording.begin_with_a_pod()
    await asyncio.sleep(300)  # three times as long as a server may be silent
    await recording.add("second")
    await asyncio.sleep(1)
    history = await recording.finish()
    assert pods(history) == [("LISTED", "first"), ("ADDED", "second")]
    assert gaps(history) == []


async def test_a_silent_server_that_lists_something_else_was_frozen(tmp_path: Path) -> None:
    recording = Recording(tmp_path, CONNECTION)
    await recording.begin_with_a_pod()
    history = await recording.unheard("second")
    assert pods(history) == [("LISTED", "first"), ("GAP", ""), ("LISTED", "first"), ("LISTED", "second")]
    assert gaps(history)[0].since_ns == 0 and "not even a bookmark" in (gaps(history)[0].reason or "")


async def test_a_server_that_stops_its_bookmarks_while_nothing_changes_is_no_gap(tmp_path: Path) -> None:
    """As a real one is with Events, which have none."""
    recording = Recording(tmp_path, CONNECTION)
    await recording.begin_with_a_pod()
    await recording.add("second")
    await asyncio.sleep(300)
    await recording.add("third")
    await asyncio.sleep(1)
    history = await recording.finish()
    assert pods(history) == [("LISTED", "first"), ("ADDED", "second"), ("ADDED", "third")]
    assert gaps(history) == []


@pytest.mark.parametrize("closing", [set(), {"Pod"}], ids=["answers", "closes the first watch that asks"])
async def test_what_came_and_went_while_a_watch_was_frozen_is_a_gap(tmp_path: Path, closing: set[str]) -> None:
    recording = Recording(tmp_path, CONNECTION)
    await recording.begin_with_a_pod()
    await recording.add("second")
    await asyncio.sleep(1)
    recording.kube.freeze()
    await recording.add("third")
    await recording.kube.delete(POD, "third", "inference", grace_s=0)
    recording.kube.closing = closing
    await asyncio.sleep(100)
    recording.kube.thaw()
    await asyncio.sleep(5)
    history = await recording.finish()
    assert [gap.since_ns for gap in gaps(history)] == [S // 10]
    assert pods(history)[-2:] == [("LISTED", "first"), ("LISTED", "second")]


async def test_a_server_that_stands_still_at_the_end_leaves_a_gap(recording: Recording) -> None:
    """For so short a time that no bookmark is missed."""
    await recording.recorder.start()
    await recording.add("second")
    await asyncio.sleep(5)
    recording.kube.freeze()
    await recording.add("third")
    await asyncio.sleep(20)
    history = await recording.finish()
    assert pods(history) == [("LISTED", "first"), ("ADDED", "second"), ("GAP", "")]
    (gap,) = gaps(history)
    assert round((gap.since_ns or 0) / S) == 0 and gap.t_ns >= 25 * S


async def test_a_server_that_is_down_at_the_end_leaves_a_gap(recording: Recording) -> None:
    await recording.recorder.start()
    await asyncio.sleep(5)
    recording.kube.go_down()
    history = await recording.finish()
    assert "connection refused" in (gaps(history)[0].reason or "")


async def test_one_watch_that_tells_nothing_any_more_leaves_a_gap(recording: Recording) -> None:
    """The server answers, but on that connection nothing comes: what it lists is not known."""
    await recording.recorder.start()
    await asyncio.sleep(5)
    recording.kube.deafen("Pod")
    await recording.add("second")
    await asyncio.sleep(5)
    history = await recording.finish()
    assert "did not confirm the recording's last moments" in (gaps(history)[0].reason or "")
    assert gaps(history, "Node") == []


async def test_what_happens_just_before_the_end_is_waited_for(recording: Recording) -> None:
    await recording.recorder.start()
    await asyncio.sleep(5)
    await recording.add("second")
    history = await recording.finish()
    assert pods(history) == [("LISTED", "first"), ("ADDED", "second")] and gaps(history) == []


async def test_gone_lists_again_and_says_so(recording: Recording) -> None:
    await recording.recorder.start()
    await asyncio.sleep(2)
    recording.kube.expired = {"Pod"}
    recording.kube.cut_watches()
    await recording.add("second")
    await asyncio.sleep(1)
    history = await recording.finish()
    assert pods(history) == [("LISTED", "first"), ("GAP", ""), ("LISTED", "first"), ("LISTED", "second")]
    assert gaps(history)[0].since_ns == 2 * S and "410 Gone" in (gaps(history)[0].reason or "")
    assert gaps(history, "Node") == []


async def test_a_resource_that_is_not_served_is_a_mark_and_no_gap(recording: Recording) -> None:
    recording.kube.absent = {"NodeClaim"}
    await recording.recorder.start()
    await asyncio.sleep(12)
    history = await recording.finish()
    of_clocks = (WALL_CLOCK_MARK, VERSION_MARK, SERVER_TIME_MARK)
    absent = [(m.name, m.value) for m in history.marks if m.name not in of_clocks]
    assert absent == [("resource_absent", "NodeClaim")]
    assert gaps(history, "NodeClaim") == []


async def test_a_resource_that_comes_later_was_unseen_since_the_last_look(recording: Recording) -> None:
    recording.kube.absent = {"Pod"}
    await recording.recorder.start()
    await asyncio.sleep(1)
    recording.kube.absent = set()
    await asyncio.sleep(9)
    history = await recording.finish()
    assert pods(history) == [("GAP", ""), ("LISTED", "first")]
    assert gaps(history)[0].since_ns == 0 and gaps(history)[0].t_ns == 5 * S


async def test_the_time_of_day_and_the_servers_version_are_noted_at_the_start_and_the_end(recording: Recording) -> None:
    await recording.recorder.start()
    await asyncio.sleep(3)
    recording.kube.version = "v1.99.0"
    noted = [(m.t_ns, m.name, m.value) for m in (await recording.finish()).marks]
    assert [(t_ns, value) for t_ns, name, value in noted if name == VERSION_MARK] == [
        (0, "v1.98.0"),
        (3 * S, "v1.99.0"),
    ]
    told = {t_ns: datetime.fromisoformat(value) for t_ns, name, value in noted if name == SERVER_TIME_MARK}
    assert list(told) == [0, 3 * S]
    assert (told[3 * S] - told[0]).total_seconds() == 3
    times = [value for _, name, value in noted if name == WALL_CLOCK_MARK]
    assert len(times) == 2
    assert all(datetime.fromisoformat(time).tzinfo for time in times)


async def test_a_server_that_is_down_at_the_end_keeps_the_recording(recording: Recording) -> None:
    await recording.recorder.start()
    recording.kube.go_down()
    marks = (await recording.finish()).marks
    assert [m.value for m in marks if m.name == VERSION_MARK] == ["v1.98.0"]
    assert len([m for m in marks if m.name == WALL_CLOCK_MARK]) == 2


async def test_a_cluster_that_cannot_be_listed_is_a_target_error(recording: Recording) -> None:
    recording.kube.go_down()
    with pytest.raises(TargetError, match=r"could not list pods, nodes.*connection refused"):
        await recording.recorder.start()
    await recording.recorder.stop()
    await recording.recorder.stop()  # twice is once


async def test_what_was_flushed_survives_a_kill(recording: Recording) -> None:
    await recording.recorder.start()
    await recording.add("second")
    await asyncio.sleep(0.5)
    history = History.load(recording.run_dir)  # nothing was closed: this is what a kill -9 leaves
    assert ("ADDED", "second") in pods(history)
    assert "cut after" in (gaps(history)[0].reason or "")


async def test_samples_of_the_waiting_metric(recording: Recording) -> None:
    await recording.recorder.start()
    await asyncio.sleep(0.6)
    assert recording.recorder.state.waiting is None  # not known is not 0
    recording.kube.waiting = {"a": "2500m", "b": "3"}
    await asyncio.sleep(0.6)
    assert recording.recorder.state.waiting == 5.5
    recording.kube.go_down()
    await asyncio.sleep(1.1)
    recording.kube.come_up()
    await asyncio.sleep(0.6)
    history = await recording.finish()
    first = history.samples[history.samples["t_ns"] == S]
    assert [tuple(r) for r in first[["source", "name", "labels", "value"]].itertuples(index=False)] == [
        ("custom.metrics", "vllm_num_requests_waiting", '{"pod":"a"}', 2.5),
        ("custom.metrics", "vllm_num_requests_waiting", '{"pod":"b"}', 3.0),
    ]
    assert [(m.name, m.value) for m in history.marks if m.name.startswith("scrape")] == [
        ("scrape_failed", "custom.metrics"),
        ("scrape_recovered", "custom.metrics"),
    ]


async def test_a_defect_of_ours_is_a_gap_and_not_the_end(
    recording: Recording, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await recording.recorder.start()
    await asyncio.sleep(1)
    whole = recording.writer.objects.write

    def broken(t_ns: int, kind: str, type: ObjectEventType, *args: object, **kwargs: object) -> int:
        monkeypatch.setattr(recording.writer.objects, "write", whole)
        raise RuntimeError("no such luck")

    monkeypatch.setattr(recording.writer.objects, "write", broken)
    await recording.add("second")
    await asyncio.sleep(1)
    history = await recording.finish()
    assert pods(history) == [("LISTED", "first"), ("GAP", ""), ("LISTED", "first"), ("LISTED", "second")]
    assert "no such luck" in (gaps(history)[0].reason or "")
    assert "recording pods failed" in caplog.text


async def test_who_wrote_it_is_kept_where_there_is_a_size_to_write(recording: Recording) -> None:
    template = {"metadata": {"labels": {"app": "llm"}}, "spec": pod("x")["spec"]}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "llm"}}, "template": template}
    await recording.kube.create(DEPLOYMENT, {"metadata": {"name": "llm"}, "spec": spec}, "inference")
    await recording.recorder.start()
    await asyncio.sleep(1)
    history = await recording.finish()
    kept = {e.kind: "managedFields" in e.object["metadata"] for e in history.objects if e.object}
    assert (kept["Pod"], kept["Deployment"]) == (False, True)
