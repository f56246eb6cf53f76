from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import harness.faults.undo as undo_module
from harness.clock import RunClock
from harness.errors import GuardRefused
from harness.faults.undo import (
    CancelInterruption,
    DeleteObjects,
    ObjectRef,
    ResetKnob,
    RestoreFields,
    ResumeProcess,
    Undo,
    UndoJournal,
    replay,
    replay_text,
    undo_from_json,
    undo_to_json,
)
from harness.faults.undoing import by_hand
from harness.history.jsonl import append_line

CLOCK = RunClock(0)
CANCEL = CancelInterruption("i-spot-1", "spot-1")
RESUME = ResumeProcess(4711, 99)
DELETE = DeleteObjects("run-1", (ObjectRef("v1", "Pod", "a", "inference"), ObjectRef("v1", "Node", "n")))


@pytest.mark.parametrize("undo", [CANCEL, RESUME, DELETE])
def test_every_kind_survives_the_journal(undo: Undo, tmp_path: Path) -> None:
    assert undo_from_json(json.loads(json.dumps(undo_to_json(undo)))) == undo
    UndoJournal(tmp_path, CLOCK).before("f-1", undo)
    assert [entry.undo for entry in replay(tmp_path / "undo.jsonl").pending] == [undo]


def test_no_journal_means_no_change(tmp_path: Path) -> None:
    assert replay(tmp_path / "undo.jsonl").entries == ()


def test_what_was_undone_is_no_longer_pending_and_what_failed_still_is(tmp_path: Path) -> None:
    journal = UndoJournal(tmp_path, CLOCK)
    first, second = journal.before("a-1", CANCEL), journal.before("b-1", RESUME)
    journal.failed(first, "unreachable")
    journal.undone(second, "resumed")
    (left,) = journal.replay().pending
    assert (left.seq, left.fault_id, left.detail) == (first, "a-1", "unreachable")
    journal.undone(first, "gone")
    assert journal.replay().pending == ()
    assert [entry.detail for entry in journal.replay().entries] == ["gone", "resumed"]


def test_a_failure_written_after_success_does_not_bring_a_change_back(tmp_path: Path) -> None:
    journal = UndoJournal(tmp_path, CLOCK)
    seq = journal.before("a-1", CANCEL)
    journal.undone(seq)
    journal.failed(seq, "a second heal that came late")
    assert journal.replay().pending == ()


def test_a_second_process_goes_on_counting(tmp_path: Path) -> None:
    assert UndoJournal(tmp_path, CLOCK).before("a-1", CANCEL) == 1
    assert UndoJournal(tmp_path, CLOCK).before("b-1", RESUME) == 2


def test_a_crash_at_any_byte_of_the_last_line_leaves_the_lines_before_and_room_for_more(tmp_path: Path) -> None:
    journal = UndoJournal(tmp_path, CLOCK)
    journal.before("a-1", CANCEL)
    whole = journal.path.read_bytes()
    journal.before("b-1", DELETE)
    both = journal.path.read_bytes()
    for cut in range(len(whole), len(both)):
        journal.path.write_bytes(both[:cut])
        read = journal.replay()
        assert ([e.fault_id for e in read.entries], read.damaged) == (["a-1"], ())
        journal.before("c-1", RESUME)
        read = journal.replay()
        assert ([e.fault_id for e in read.entries], read.damaged) == (["a-1", "c-1"], ())


def test_a_torn_line_does_not_swallow_what_became_of_the_others(tmp_path: Path) -> None:
    journal = UndoJournal(tmp_path, CLOCK)
    seq = journal.before("a-1", CANCEL)
    with journal.path.open("a") as file:
        file.write('{"seq":2,"t_ns":0,"op":"pla')
    journal.undone(seq)
    assert (journal.replay().pending, journal.replay().damaged) == ((), ())


def test_changes_of_several_threads_at_once_are_all_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Faults in the background run in threads of their own. Two with one number would be one that is forgotten."""

    def slowly(path: Path, value: dict[str, Any], *, sync: bool) -> None:
        time.sleep(0.002)  # so that others come between what was read and what is written
        append_line(path, value, sync=sync)

    monkeypatch.setattr(undo_module, "append_line", slowly)

    def change(thread: int) -> list[int]:
        journal = UndoJournal(tmp_path, CLOCK)
        return [journal.before(f"f-{thread}", ResetKnob("k", f"{thread}-{n}")) for n in range(5)]

    with ThreadPoolExecutor(4) as pool:
        given = [seq for seqs in pool.map(change, range(4)) for seq in seqs]
    assert sorted(given) == list(range(1, 21)) and len(replay(tmp_path / "undo.jsonl").pending) == 20


def test_two_changes_with_one_number_are_never_taken_for_one(tmp_path: Path) -> None:
    journal = UndoJournal(tmp_path, CLOCK)
    journal.before("a-1", CANCEL)
    journal.path.write_text(journal.path.read_text() * 2)
    assert journal.replay().damaged == ("undo.jsonl:2: ValueError: change 1 is there already",)


def test_what_separates_lines_in_unicode_separates_none_here(tmp_path: Path) -> None:
    journal = UndoJournal(tmp_path, CLOCK)
    seq = journal.before("a-1", RestoreFields(NODE, {"a": "x\u2028y\x85z"}, {"a": None}))
    journal.undone(seq, "said: \u2029")
    assert (len(journal.replay().entries), journal.replay().pending, journal.replay().damaged) == (1, (), ())


def test_a_journal_that_cannot_be_read_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "undo.jsonl").mkdir()
    assert replay(tmp_path / "undo.jsonl").damaged == ("undo.jsonl: it cannot be read: Is a directory",)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from places(part, (*at, key))


def with_junk(value: Any, at: tuple[Any, ...], junk: Any) -> Any:
    if not at:
        return junk
    value = deepcopy(value)
    holder = value
    for key in at[:-1]:
        holder = holder[key]
    holder[at[-1]] = junk
    return value


@pytest.mark.parametrize("junk", [None, True, -1, 1e999, float("nan"), 10**400, "", "x", [], {}, ["x"], {"a": 1}])
@pytest.mark.parametrize(
    "undo", [CANCEL, RESUME, DELETE, ResetKnob("k", "t"), RestoreFields(ObjectRef("v1", "Node", "n"), {"a": 1}, {})]
)
def test_whatever_stands_in_a_line_it_is_a_change_that_is_named_or_damage(undo: Undo, junk: Any) -> None:
    about = {"fault": "f", "arguments": {"a": 1}, "targets": ["t"]}
    line = {"seq": 1, "t_ns": 0, "fault_id": "f-1", "op": "planned", "undo": undo_to_json(undo), "about": about}
    line = json.loads(json.dumps(line))
    for at in places(line):
        found = replay_text(json.dumps(with_junk(line, at, junk)) + "\n")
        assert found.pending or found.damaged, at
        for entry in found.pending:
            assert by_hand(entry.undo), at


def test_a_complete_line_that_makes_no_sense_is_reported_not_skipped_in_silence(tmp_path: Path) -> None:
    journal = UndoJournal(tmp_path, CLOCK)
    journal.before("a-1", CANCEL)
    with journal.path.open("a") as file:
        file.write("garbage\n")
        file.write('{"seq":77,"op":"undone"}\n')
    journal.before("b-1", RESUME)
    read = journal.replay()
    assert [e.fault_id for e in read.pending] == ["a-1", "b-1"]
    assert [line.split(":")[1] for line in read.damaged] == ["2", "3"]


def test_an_undo_of_a_kind_this_version_does_not_know_stays_pending(tmp_path: Path) -> None:
    journal = UndoJournal(tmp_path, CLOCK)
    journal.path.write_text('{"seq":1,"t_ns":5,"fault_id":"x-1","op":"planned","undo":{"kind":"regrow_limb"}}\n')
    (entry,) = journal.replay().pending
    assert (entry.undo, entry.detail) == (None, "unknown kind of undo 'regrow_limb'")


NODE = ObjectRef("v1", "Node", "n")


@pytest.mark.parametrize(
    ("held", "wanted", "what"),
    [
        (ResetKnob("net.link", "pods"), ResetKnob("net.link", "pods", {"loss_ratio": 1}), "net.link of pods"),
        (ResetKnob("net.link", "pods"), ResetKnob("net.link", "clients"), None),
        (RestoreFields(NODE, {"a": {"b": 1}}, {}), RestoreFields(NODE, {"a": {"b": 2, "c": 1}}, {}), "a.b of Node/n"),
        (RestoreFields(NODE, {"a": {"b": 1}}, {}), RestoreFields(NODE, {"a": None}, {}), "a of Node/n"),
        (RestoreFields(NODE, {"a": {"b": 1}}, {}), RestoreFields(NODE, {"a": {"c": 1}}, {}), None),
        (CancelInterruption("i-1", "n"), CancelInterruption("i-1", "n"), "the notice of i-1"),
        (CancelInterruption("i-1", "n"), ResetKnob("net.link", "pods"), None),
    ],
)
def test_what_one_fault_holds_no_other_changes(tmp_path: Path, held: Undo, wanted: Undo, what: str | None) -> None:
    """Taken back in any order, one of the two changes would stay."""
    journal = UndoJournal(tmp_path, RunClock(0, 1.0))
    first = journal.before("a-1", held)
    journal.before("a-1", held)  # the same fault may go on changing it: it is taken back in the other order
    if what is None:
        journal.before("b-1", wanted)
        return
    with pytest.raises(GuardRefused, match=f"b-1 would change {what}, which a-1 holds"):
        journal.before("b-1", wanted)
    journal.undone(first)
    journal.undone(first + 1)
    journal.before("b-1", wanted)
