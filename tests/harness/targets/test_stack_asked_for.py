"""An experiment that wants real components: what is refused, and what stands aside."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from harness.errors import BadInput
from harness.run.preparing import fitting_target, prepare
from harness.spec.experiment import load_experiment
from harness.targets.choosing import TARGETS
from harness.targets.wanted import wanted_by

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = ROOT / "experiments" / "spot-interruption-during-burst.yaml"


def with_stack(folder: Path, *names: str) -> Path:
    raw = yaml.safe_load(SHIPPED.read_text())
    ours = next(e for e in raw["extensions"] if e["name"] == "gpu-harness")
    ours["stack"] = list(names)
    ours["load"] = str((SHIPPED.parent / ours["load"]).resolve())
    (folder / "manifests").symlink_to(SHIPPED.parent / "manifests")
    file = folder / "experiment.yaml"
    file.write_text(yaml.safe_dump(raw, sort_keys=False))
    return file


def test_a_name_that_nothing_has_is_told_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"stack.0\): there is no component 'karpentr'\n.*did you mean 'karpenter'"):
        load_experiment(with_stack(tmp_path, "karpentr"))


def test_it_is_refused_where_the_api_server_is_emulated(tmp_path: Path) -> None:
    file = with_stack(tmp_path, "kueue")
    with pytest.raises(BadInput, match=r"kueue cannot run on the target embedded.*\n.*--target controlplane"):
        prepare(file, seed=1, target="embedded", cut=None)
    assert fitting_target(file) == "controlplane"
    assert fitting_target(SHIPPED) == "embedded"
    assert prepare(file, seed=1, target=fitting_target(file), cut=None).target == "controlplane"


STACK = Path(__file__).parents[3] / "experiments" / "stack"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("karpenter-expires-nodes-under-load", "no pool of the world names the NodePool gpu"),
        ("expiring", "disrupts nothing by itself, and this one has expireAfter 45s and consolidateAfter Never"),
    ],
)
def test_a_node_pool_that_the_embedded_cluster_would_not_go_by_is_refused(tmp_path: Path, name: str, says: str) -> None:
    file = STACK / f"{name}.yaml"
    if name == "expiring":
        file = tmp_path / "experiment.yaml"
        text = (STACK / "karpenter-expires-nodes-under-load.yaml").read_text()
        for folder in ("load/", "../manifests/", "manifests/"):
            text = text.replace(f" {folder}", f" {(STACK / folder).resolve()}/").replace(
                f"[{folder}", f"[{STACK / folder}/"
            )
        file.write_text(text.replace("{name: elastic,", "{name: elastic, nodepool: gpu,"))
    with pytest.raises(BadInput, match=says):
        prepare(file, seed=1, target="embedded", cut=None)


def test_what_we_emulate_stands_aside_for_the_real_thing(tmp_path: Path) -> None:
    wanted = wanted_by(load_experiment(with_stack(tmp_path, "karpenter", "prometheus-adapter")), 1)
    assert wanted.config.aside == {"karpenter", "custom.metrics.k8s.io"}
    assert type(wanted.config).from_json(wanted.config.to_json()) == wanted.config
    assert wanted.stack == ("karpenter", "prometheus-adapter")
    assert "controlplane" in TARGETS
