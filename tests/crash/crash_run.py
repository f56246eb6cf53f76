"""``make test-crash``: kill -9 at 200 random moments over all faults, and what was left. Figures to docs/safety.md.

Exit codes: 0 nothing was left and everybody stopped in time, 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

from crash_moment import KINDS, Moment, Outcome, Stage, all_variants, draw
from crash_virtual import draw_pair, killed_at

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "safety.md"
BEGIN, END = "<!-- figures of make test-crash -->", "<!-- end of the figures -->"
CHUNK = 10
PROCESSES = 2
CONTROLS = 3
PAIRS = 300


def play_chunk(job: tuple[list[Moment], bool]) -> list[Outcome]:
    """Moments on one cluster after another, in this process."""
    moments, faults = job
    with tempfile.TemporaryDirectory(prefix="crash-") as folder, Stage(Path(folder)) as stage:
        return [_told(stage.play(moment, faults=faults)) for moment in moments]


def _told(outcome: Outcome) -> Outcome:
    """Each at once, from the process that played it, so that a person sees how far it is."""
    print("BAD " if outcome.problems else "ok  ", json.dumps(asdict(outcome)), flush=True)
    return outcome


def play_all(moments: Sequence[Moment], *, faults: bool = True, chunk: int = CHUNK) -> Iterator[Outcome]:
    """In the order in which they end, two at a time."""
    jobs = [(list(moments[at : at + chunk]), faults) for at in range(0, len(moments), chunk)]
    # Not a Pool: its processes may have no children of their own, and these start clusters and supervisors.
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        for done in as_completed([pool.submit(play_chunk, job) for job in jobs]):
            yield from done.result()


def figures(outcomes: Sequence[Outcome], controls: Sequence[Outcome], seed: int) -> list[tuple[str, str]]:
    killed = [o for o in outcomes if o.killed in KINDS]
    faults = {name for o in outcomes for name in o.moment["faults"]}
    rows = [
        ("moments, seed", f"{len(outcomes)}, {seed}"),
        ("variants of faults in them", f"{len(faults)} of {len(all_variants())}"),
        ("killed", ", ".join(f"{k} {n}" for k, n in sorted(Counter(o.killed for o in outcomes).items()))),
        ("changes made, of those standing at the kill",
         f"{sum(o.changes for o in outcomes)}, {sum(o.pending_at_kill for o in outcomes)}"),
        ("moments with a change standing", str(sum(o.pending_at_kill > 0 for o in killed))),
        ("healed by", ", ".join(f"{k} {n}" for k, n in Counter(o.healed_by for o in killed).most_common())),
        ("fields or objects of the harness left after `sweep`", str(sum(bool(o.problems) for o in outcomes))),
    ]  # fmt: skip
    for kind, when in (("chaos", "supervisor"), ("load", "supervisor"), ("load", "chaos")):
        ends = [o.stopped[kind] for o in killed if o.killed == when and kind in o.stopped]
        if ends:
            own, raw = sorted(e["own_s"] for e in ends), sorted(e["took_s"] for e in ends)
            rows.append((
                f"{kind} gone after the {when} was killed: median, worst "
                "(worst beyond what it, the cluster and the watcher waited for a processor)",
                f"{raw[len(raw) // 2]:.2f} s, {raw[-1]:.2f} s ({own[-1]:.2f} s)",
            ))  # fmt: skip
    noticed = sorted(o.noticed_s for o in killed if o.noticed_s is not None)
    if noticed:
        rows.append(
            ("the supervisor noticed: median, worst", f"{noticed[len(noticed) // 2]:.2f} s, {noticed[-1]:.2f} s")
        )
    rows.append(("other differences, without faults", _kinds([*controls]) or "none"))
    rows.append(("other differences, the system's answers to faults", _kinds(outcomes) or "none"))
    return rows


def _kinds(outcomes: Sequence[Outcome]) -> str:
    names = [d.partition("/")[0] + d.rpartition(":")[2].replace(" ", " ") for o in outcomes for d in o.other]
    names += [f"{d.partition('/')[0]} gone" for o in outcomes for d in o.gone]
    return ", ".join(f"{k} ({n})" for k, n in Counter(names).most_common())


def write(rows: Sequence[tuple[str, str]]) -> None:
    table = "\n".join(["| figure | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])
    page = PAGE.read_text()
    PAGE.write_text(re.sub(f"{BEGIN}.*{END}", f"{BEGIN}\n{table}\n{END}", page, flags=re.S))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--moments", type=int, default=200)
    parser.add_argument("--only", type=int, nargs="*", help="moments by number; writes no figures")
    parser.add_argument("--write", action="store_true", help="the figures into docs/safety.md")
    args = parser.parse_args()
    began_s = time.monotonic()
    moments = draw(args.seed, args.moments)
    if args.only:
        moments = [m for m in moments if m.number in args.only]
    outcomes = list(play_all(moments))
    quiet = [] if args.only else [Moment(n, KINDS[n % 3], (), False, 2.0) for n in range(CONTROLS)]
    controls = list(play_all(quiet, faults=False))
    rows = figures(outcomes, controls, args.seed)
    pairs = 0 if args.only else PAIRS
    left = [seed for seed in range(pairs) if killed_at(draw_pair(seed), seed).problems]
    rows.append(
        (
            "in virtual time: pairs of faults, dead at a moment of each; of these something was left",
            f"{pairs}, {len(left)}",
        )
    )
    rows.append(("took", f"{(time.monotonic() - began_s) / 60:.0f} min"))
    print("\n".join(f"{name}: {value}" for name, value in rows))
    if args.write and not args.only:
        write(rows)
    return int(bool(left) or any(o.problems for o in [*outcomes, *controls]))


if __name__ == "__main__":
    sys.exit(main())
