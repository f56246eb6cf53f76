"""Compares what a real component did in an experiment with what the embedded cluster does: ``agree.py NAME RUN``.

RUN is the folder of a run of that experiment on the real one; the embedded side is played in virtual time. ``--keep``
writes what the real side did into ``recorded/``, which ``make test`` compares without any programs. Exits 1 on a
difference that ``expected.yaml`` does not explain, 64 where nothing is declared to agree.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "harness" / "run" / "virtual"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "behaviour"))

from bothsides.lives import plays_to_json
from declared import RECORDED, declared
from histories import compared, wanted_lives
from virtual_runs import run_virtually

from harness.history.reader import History


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("run", type=Path)
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    expected = {e.name: e for e in declared() if e.agreement is not None}.get(args.name)
    if expected is None or expected.agreement is None:
        print(f"nothing is declared to agree of {args.name!r}", file=sys.stderr)
        return 64
    real = wanted_lives(expected.agreement, History.load(args.run))
    with tempfile.TemporaryDirectory() as folder:
        ours = wanted_lives(expected.agreement, run_virtually(expected.embedded_file, Path(folder)).history)
    found = compared(expected.agreement, ours, real)
    for difference in found.differences:
        print(f"    {difference}")
    apart = f"{found.transitions} transitions, at most {found.latest_s:.1f} s apart ({found.latest})"
    print(f"{args.name}: {'agrees' if found.agrees else 'DIFFERS'}, {apart}")
    if args.keep:
        RECORDED.mkdir(exist_ok=True)
        expected.recorded.write_text(plays_to_json([real]))
    return 0 if found.agrees else 1


if __name__ == "__main__":
    sys.exit(main())
