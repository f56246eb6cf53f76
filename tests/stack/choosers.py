"""What a real endpoint picker chose, beside what the embedded gateway chooses: ``choosers.py NAME RUN [--keep]``.

RUN is the folder of a run of that experiment on the real one. The embedded side is the same experiment in virtual time,
with the same replicas, load and faults behind a Service, for our own gateway chooses by requests in flight. ``--keep``
writes the real side into ``choosers.json``, which ``make test`` compares.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "harness" / "run" / "virtual"))

import yaml
from declared import FOLDER, ROOT
from virtual_runs import run_virtually

from harness.checks.departures import pod_fates
from harness.checks.routing import placings
from harness.checks.rows import rows_of
from harness.checks.units import span_ns
from harness.history.reader import History

KEPT = Path(__file__).with_name("choosers.json")
_KNOWN_S = 15.0
"""Scenario seconds (one of the clock) in which a chooser hears of a replica that came, or that is to go."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """``most_share``: of the requests that had a choice, those that went to one replica. ``behind_most``: how many more
    the chosen one had in flight than another that was ready. ``to_going``: sent to a replica that was going already."""

    requests: int
    replicas: int
    most_share: float
    behind_most: int
    to_going: int


def chosen(history: History) -> Chosen:
    rows, known_ns = rows_of(history), span_ns(_KNOWN_S, history.run.time_scale)
    placed = list(placings(history, rows, known_ns))
    pods = Counter(p.pod for p in placed)
    going = {name: fate.asked.t_ns for name, fate in pod_fates(history).items() if fate.asked is not None}
    late = [p for p in placed if p.pod in going and p.t_ns > going[p.pod] + known_ns]
    most = max(pods.values(), default=0) / max(1, len(placed))
    return Chosen(len(placed), len(pods), round(most, 3), max((p.behind for p in placed), default=0), len(late))


def embedded(name: str, folder: Path) -> History:
    """The same experiment without a picker, in virtual time."""
    shutil.copytree(ROOT / "experiments", folder / "experiments")
    file = folder / "experiments" / "stack" / f"{name}.yaml"
    experiment = yaml.safe_load(file.read_text())
    (settings,) = experiment["extensions"]
    del settings["stack"]
    for manifest in settings["manifests"]:
        _behind_a_service(file.parent / manifest)
    file.write_text(yaml.safe_dump(experiment, sort_keys=False))
    history: History = run_virtually(file, folder / "reports").history
    return history


def _behind_a_service(manifest: Path) -> None:
    objects = list(yaml.safe_load_all(manifest.read_text()))
    for obj in objects:
        if obj["kind"] == "InferencePool":
            spec = obj["spec"]
            ports = [{"name": "http", "port": 80, "targetPort": spec["targetPorts"][0]["number"]}]
            obj |= {"apiVersion": "v1", "kind": "Service"}
            obj["spec"] = {"selector": spec["selector"]["matchLabels"], "ports": ports}
    manifest.write_text(yaml.safe_dump_all(objects))


def kept() -> dict[str, Chosen]:
    return {name: Chosen(**said) for name, said in json.loads(KEPT.read_text()).items()} if KEPT.is_file() else {}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("run", type=Path)
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    if not (FOLDER / f"{args.name}.yaml").is_file():
        print(f"there is no experiment {args.name!r} in {FOLDER}", file=sys.stderr)
        return 64
    real = chosen(History.load(args.run))
    with tempfile.TemporaryDirectory() as folder:
        ours = chosen(embedded(args.name, Path(folder)))
    print(f"{args.name}: real {real}\n{args.name}: ours {ours}")
    if args.keep:
        known = {name: asdict(said) for name, said in (kept() | {args.name: real}).items()}
        KEPT.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
