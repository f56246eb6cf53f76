"""Both books agree: every answer was given once, and no token of it was lost or repeated on its way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.checks.endings import set_aside
from harness.checks.rows import Request, Rows, rows_of
from harness.checks.sight import blind
from harness.checks.story import moment, tell
from harness.checks.units import count, listed
from harness.history.tables import LEDGER_FILE, LedgerEntry, Outcome
from harness.verdict import Evidence, Finding, Role, Status, Value

if TYPE_CHECKING:
    from harness.history.reader import History
    from harness.spec.checks import RequestsSpec

_WHOLE = frozenset({"stop", "length"})
"""Ends by which a server says that it gave the whole answer."""


_ENOUGH = 5
"""Of fewer requests nothing is said about where they have gone wrong."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One request on which the books differ: tokens lost and repeated, answers beyond the first."""

    row: Request
    entries: tuple[LedgerEntry, ...]
    why: str
    lost: int = 0
    repeated: int = 0
    answers: int = 0


def requests(history: History, spec: RequestsSpec) -> Finding:
    """The clients' book is the requests table, the other is what the fake model servers wrote down of what they sent.

    An answer is repeated when more servers sent tokens of it than it had attempts. Tokens that were on their way when
    a stream was cut are the stream's loss, which `graceful_drain` judges; where a server says that it gave the whole
    answer, and the client did not get it, they are lost here.

    UNKNOWN without a ledger, as on real model servers, when it is cut or damaged, and when no answer stands in both.
    """
    if history.ledger is None:
        sentence = f"there is no ledger of what the servers sent (history/{LEDGER_FILE}), so there is no second book"
        return Finding("requests", Role.CHECK, Status.UNKNOWN, sentence, 0)
    table = rows_of(history)
    aside = set_aside(history, table)
    entries: dict[str, list[LedgerEntry]] = {}
    for entry in history.ledger:
        entries.setdefault(entry.request, []).append(entry)
    found: list[Disagreement] = []
    compared = open_ = 0
    sent, agrees = table.sent, _agreement(table)
    attempts: dict[int, list[int]] = {}
    for at, request_id in enumerate(table.numbers("request_id").astype(int).tolist()):
        attempts.setdefault(request_id, []).append(at)
    for request_id, own in attempts.items():
        book = tuple(entries.get(f"{history.run.seed}-{request_id}", ()))
        last = own[-1]
        if aside[last]:
            continue
        open_ += any(not entry.closed for entry in book)
        compared += bool(book) and bool(sent[last])
        if len(own) == len(book) == 1 and agrees(last, book[0]):
            continue  # as nearly all are
        if (why := _compare(table.where(own), book)) is not None:
            found.append(why)
    ours = {f"{history.run.seed}-{request_id}" for request_id in attempts}
    foreign = sum(len(e) for key, e in entries.items() if key not in ours)
    return _finding(history, spec, found, compared, open_, foreign, table)


def _agreement(table: Rows) -> Callable[[int, LedgerEntry], bool]:
    """Whether a request, by its place, was answered whole and its only account says the same of it."""
    whole = (table.ok & table.sent).tolist()
    pods, chunks, tokens = (
        table.texts("pod"), table.numbers("chunks").tolist(), table.numbers("output_tokens").tolist()
    )  # fmt: skip

    def agrees(at: int, entry: LedgerEntry) -> bool:
        gave_all = whole[at] and entry.closed and entry.finish in _WHOLE
        parts = chunks[at] == entry.sent_events and tokens[at] == entry.sent_tokens
        return gave_all and parts and pods[at] in (None, entry.pod)

    return agrees


def _finding(
    history: History,
    spec: RequestsSpec,
    found: list[Disagreement],
    compared: int,
    open_: int,
    foreign: int,
    table: Rows,
) -> Finding:
    lost, repeated = sum(d.lost for d in found), sum(d.repeated for d in found)
    answers = sum(d.answers for d in found)
    other = [d for d in found if not (d.lost or d.repeated or d.answers)]
    broken = lost + repeated > spec.tokens_lost_max or answers > spec.answers_repeated_max or bool(other)
    gap = blind(history, {LEDGER_FILE})
    sure = [d for d in found if gap is None or d.repeated or d.answers]
    if broken and sure:
        status, sentence = Status.FAIL, _wrong(sure, lost, repeated, answers)
    elif gap is not None:
        status, sentence = Status.UNKNOWN, f"the second book is damaged: {gap.reason}"
    elif not compared:
        status, sentence = Status.UNKNOWN, "no request stands in both books, so nothing was compared"
    else:
        status = Status.PASS
        cut = int((table.sent & ~table.ok & ~table.hung_up_by_plan).sum())
        sentence = (
            f"{count(compared, 'request')} in both books: none answered twice, no token of a whole answer lost or "
        )
        sentence += "repeated"
        sentence += f"; {count(cut, 'answer')} that did not come whole are no matter of this check" if cut else ""
        sentence += f" ({count(lost + repeated, 'token')} and {count(answers, 'answer')} allowed)" if found else ""
    numbers: dict[str, Value] = {
        "compared": compared, "tokens_lost": lost, "tokens_repeated": repeated, "answers_repeated": answers,
        "disagreements": len(found), "never_closed": open_, "of_others": foreign,
    }  # fmt: skip
    evidence = tuple(_row(d) for d in sorted(found, key=lambda d: -(d.answers * 1_000_000 + d.lost + d.repeated)))
    story = _story(history, sure) if status is Status.FAIL else ""
    return Finding("requests", Role.CHECK, status, sentence, compared, numbers, evidence, story=story)


def _compare(own: list[Request], book: tuple[LedgerEntry, ...]) -> Disagreement | None:
    """One request, in both books. The last attempt is the one whose answer counts."""
    row = own[-1]
    sending = [entry for entry in book if entry.sent_tokens or not entry.closed]
    sent = sum(1 for attempt in own if attempt.sent_ns is not None)
    if not sent:
        return (
            Disagreement(row, book, "it was not sent, yet a server answered it", answers=len(sending))
            if sending
            else None
        )
    if len(sending) > sent:
        pods = listed([entry.pod for entry in sending])
        extra = max(0, row.chunks - max(entry.sent_events for entry in sending))
        why = f"it was sent {sent} time(s), but answered by {pods}"
        return Disagreement(row, book, why, repeated=extra, answers=len(sending) - sent)
    entry = next((e for e in reversed(book) if row.pod in (None, e.pod)), None)
    if entry is None:
        return Disagreement(row, book, f"it was answered whole, but {row.pod} has no account of it") if row.ok else None
    if not entry.closed:
        return None
    return _tokens(row, entry)


def _tokens(row: Request, entry: LedgerEntry) -> Disagreement | None:
    books = (entry,)
    extra = row.chunks - entry.sent_events
    if extra > 0:
        return Disagreement(
            row, books, f"{entry.pod} sent {entry.sent_events} parts, {row.chunks} came", repeated=extra
        )
    gave_all = entry.finish in _WHOLE
    if row.ok and not gave_all:
        return Disagreement(row, books, f"it was answered whole, but {entry.pod} says it ended as {entry.finish}")
    if extra < 0 and gave_all and not row.hung_up_by_plan:
        why = f"{entry.pod} sent {entry.sent_events} parts of a whole answer, {row.chunks} came"
        return Disagreement(row, books, why, lost=-extra)
    if row.ok and row.output_tokens != entry.sent_tokens:
        return Disagreement(row, books, f"usage says {row.output_tokens} tokens, {entry.pod} sent {entry.sent_tokens}")
    if row.outcome == Outcome.TRUNCATED and gave_all:
        return Disagreement(row, books, f"{entry.pod} gave the whole answer, but its end did not come")
    return None


def _wrong(found: list[Disagreement], lost: int, repeated: int, answers: int) -> str:
    parts = [
        text
        for n, text in (
            (answers, count(answers, "answer") + " given more than once"),
            (repeated, count(repeated, "token") + " repeated"),
            (lost, count(lost, "token") + " lost"),
        )
        if n
    ]
    first = found[0]
    where = f"{count(len(found), 'request')} differ between the books"
    return f"{where}{': ' + ', '.join(parts) if parts else ''} (first: request {first.row.request_id}: {first.why})"


def _story(history: History, found: list[Disagreement]) -> str:
    first = found[0]
    pods = list(dict.fromkeys(entry.pod for entry in first.entries))
    retried = first.answers and len(pods) > 1
    cause, change = _between(found)
    if retried:
        cause = f"something between client and servers sent it again, to {listed(pods)}"
    if first.answers or (first.repeated and retried):
        change = "let the gateway retry only what no server has begun to answer"
    return tell(
        promised="every answer is given once, and every token of it arrives once",
        happened=f"request {first.row.request_id}: {first.why}; {count(len(found), 'request')} in all; "
        f"{_pattern(found)}",
        when=moment(history, first.row.end_ns),
        objects=[*pods, *(f"request {d.row.request_id}" for d in found)],
        cause=cause,
        change=change,
    )


def _pattern(found: list[Disagreement]) -> str:
    """What was expected beside what came, and how regular the difference is."""
    expected = sum(entry.sent_events for d in found for entry in d.entries[-1:] if entry.closed)
    came = sum(d.row.chunks for d in found)
    off = sum(d.lost + d.repeated for d in found)
    often = f", one in {round(expected / off)}" if off and expected >= off else ""
    return f"expected {expected} parts in these answers, {came} came{often}"


def _between(found: list[Disagreement]) -> tuple[str, str]:
    """Whether one server is to blame, or what all of them have in common. Too few requests tell neither."""
    on = Counter(entry.pod for d in found for entry in d.entries[-1:])
    if len(found) < _ENOUGH or not on:
        return "", "compare what the servers logged with what the gateway passed on"
    pod, most = on.most_common(1)[0]
    if most == len(found):
        return f"all of them were answered by {pod}, and none by another", f"look at {pod}, its version and its node"
    each = f"answers of all {len(on)} servers differ alike ({most} of {pod} at most)"
    return f"{each}: not one server, but what lies between them and the client", "look at the gateway and its filters"


def _row(d: Disagreement) -> Evidence:
    facts: dict[str, Value] = {
        "pod": d.row.pod, "outcome": d.row.outcome, "came": d.row.chunks,
        "sent": " + ".join(f"{e.sent_events if e.closed else '?'} by {e.pod}" for e in d.entries) or "nothing",
        "lost": d.lost, "repeated": d.repeated, "answers_repeated": d.answers,
        "ledger": ", ".join(f"ledger:{e.index}" for e in d.entries),
    }  # fmt: skip
    return Evidence(d.row.ref, d.row.end_ns, d.why, facts)
