"""A kind cluster as the cluster of others: brought up by us, then known by a kubeconfig with exactly the printed role.

``python tests/kind/foreign_on_kind.py FOLDER``, with DOCKER_HOST and all else as the target kind wants it. Ends with
1, and says why, when something is not as it must be.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "controlplane"))

from foreign_cluster import EXPERIMENT, NS, Foreign

from harness.faults.permissions import rbac_objects
from harness.run.allowing import needs_of
from harness.spec.experiment import load_experiment
from harness.targets.choosing import TARGETS
from harness.targets.wanted import Places, wanted_by


def main() -> int:
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    experiment = load_experiment(EXPERIMENT)
    places = Places(folder, folder, say=lambda text: print(text, flush=True))
    target = TARGETS["kind"](None)(wanted_by(experiment, 1), places)
    with asyncio.Runner() as runner:
        try:
            foreign = Foreign(runner, runner.run(target.up()), folder)
            needs = needs_of(experiment)
            account = runner.run(foreign.account(rbac_objects(needs, NS), needs, "gpu-harness"))
            runner.run(foreign.opt_in())
            wrong = foreign.run_with(account, folder)
        finally:
            runner.run(target.down())
    print("\n".join(wrong) or "as it must be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
