"""Each rule finds what was planted for it, and nothing else; a clean folder has nothing to find."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.inspection.accepting import Accepts, read_accepts
from harness.inspection.inspecting import Inspection, look
from harness.inspection.objects import Known, Objects
from harness.inspection.reading import read_paths
from harness.inspection.registry import RULES
from harness.inspection.rule import Rule, Severity
from harness.inspection.seen import Seen
from harness.kube.port import Json

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
MANIFESTS = ROOT / "experiments" / "manifests"
PLANTED = sorted(rule.id for rule in RULES.values() if not rule.live_only)


def look_at(*paths: Path, known: Known | None = None, accepts: Accepts | None = None) -> Inspection:
    seen, notes = read_paths(paths)
    return look(Objects(seen, known=known or Known()), accepts or Accepts(), "manifests", notes)


def ids(inspection: Inspection) -> list[str]:
    return [finding.rule.id for finding in inspection.open]


def live(*objects: Json) -> Inspection:
    return look(Objects(tuple(map(Seen, objects)), live=True), Accepts(), "a cluster")


@pytest.mark.parametrize("rule", PLANTED)
def test_a_planted_problem_is_found_by_its_rule_and_by_no_other(rule: str) -> None:
    file = HERE / "planted" / f"{rule}.yaml"
    found = look_at(file)
    assert ids(found) == [rule]
    where = found.open[0].where
    assert where.file == str(file) and where.line is not None and where.line > 1


def test_every_planted_file_is_of_a_rule() -> None:
    assert sorted(file.stem for file in (HERE / "planted").iterdir()) == PLANTED


def test_the_planted_problems_as_one_folder_are_each_found_once_and_in_their_place() -> None:
    found = look_at(HERE / "planted", known=Known(20.0, "--longest-stream-s")).open
    by_default = "grace-by-default"  # a warning that is no more where the longest stream is known
    assert sorted(finding.rule.id for finding in found) == [rule for rule in PLANTED if rule != by_default]
    elsewhere = [(f.rule.id, f.where.file) for f in found if Path(f.where.file).stem != f.rule.id]
    assert elsewhere == []


@pytest.mark.parametrize("rule", ["pdb-blocks-every-drain", "nodepool-cuts-grace", "scale-from-zero-without-gpu"])
@pytest.mark.parametrize("first", [True, False])
def test_a_variant_of_the_same_object_in_another_file_hides_nothing(tmp_path: Path, rule: str, first: bool) -> None:
    """As overlays have it: the folder of another environment has the same names, and is right."""
    planted = (HERE / "planted" / f"{rule}.yaml").read_text()
    right = planted.replace("minReplicas: 2", "minReplicas: 4").replace("Period: 1m", "Period: 1h")
    right = right.replace("[m7i, c7i]", "[p5]")
    assert right != planted
    names = ("a.yaml", "b.yaml") if first else ("b.yaml", "a.yaml")
    for name, text in zip(names, (planted, right), strict=True):
        (tmp_path / name).write_text(text)
    [found] = look_at(tmp_path).open
    assert (found.rule.id, Path(found.where.file).name) == (rule, names[0])


def test_a_clean_folder_has_nothing_to_find() -> None:
    found = look_at(HERE / "clean")
    assert ids(found) == []
    assert found.not_judged == ()
    assert {item.section for item in found.inventory} == {
        "model servers", "autoscalers", "gangs and queues", "disruption budgets", "gateways",
    }  # fmt: skip


def test_the_experiments_manifests_have_what_they_are_meant_to_have_and_no_more() -> None:
    accepts = read_accepts(ROOT / "experiments" / "accept" / "manifests.yaml")
    found = look_at(MANIFESTS, known=Known(60.0, "the profile"), accepts=accepts)
    assert ids(found) == []
    assert found.notes == ()  # each entry still accepts something
    meant = {(Path(f.where.file).name, f.rule.id) for f in found.findings if f.rule.id != "replicas-beside-autoscaler"}
    assert meant == {
        ("llm-on-gpu-duty-cycle.yaml", "hpa-on-gpu-duty-cycle"),
        ("llm-on-gpu-memory.yaml", "hpa-on-gpu-memory"),
        ("llm-no-window.yaml", "no-scale-down-window"),
        ("second-autoscaler.yaml", "two-autoscalers-on-one-target"),
    }


@pytest.mark.parametrize(
    "planted, rule",
    [
        ("budget-for-nobody.yaml", "pdb-selects-nothing"),
        ("budget-that-blocks.yaml", "pdb-blocks-every-drain"),
        ("budgets-that-share.yaml", "two-pdbs-on-one-pod"),
        ("second-autoscaler.yaml", "two-autoscalers-on-one-target"),
        ("llm-short-grace.yaml", "grace-below-longest-stream"),
    ],
)
def test_what_a_negative_experiment_plants_in_its_manifests_is_seen_before_it_runs(planted: str, rule: str) -> None:
    file = ROOT / "experiments" / "negative" / "manifests" / planted
    beside = [] if planted.startswith("llm") else [MANIFESTS / "llm.yaml"]
    assert rule in ids(look_at(file, *beside, known=Known(60.0, "the profile")))


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_a_rule_says_all_that_a_reader_needs(rule: Rule) -> None:
    for words in (rule.sentence, rule.right, rule.todo, rule.incident, rule.source):
        assert words.strip() == words != ""
    assert rule.sentence.endswith(".") and rule.incident.endswith(".")
    assert rule.looks_at and rule.id == rule.id.lower().replace("_", "-").replace(" ", "-")
    assert rule.severity in Severity


def test_without_a_longest_stream_its_rule_is_not_judged() -> None:
    found = look_at(HERE / "planted" / "grace-by-default.yaml")
    assert [rule.id for rule, _ in found.not_judged] == ["grace-below-longest-stream"]
    known = look_at(HERE / "planted" / "grace-by-default.yaml", known=Known(20.0, "--longest-stream-s"))
    assert (known.not_judged, ids(known)) == ((), [])
    longer = look_at(HERE / "planted" / "grace-by-default.yaml", known=Known(31.0, "--longest-stream-s"))
    assert ids(longer) == ["grace-below-longest-stream"]


@pytest.mark.parametrize(
    "wrong, right",
    [
        (
            "spec.template.spec.containers[0].tolerations",
            "it belongs to spec.template.spec, as spec.template.spec.tolerations",
        ),
        ("spec.nodeSelector", "it belongs deeper, as spec.template.spec.nodeSelector"),
        ("spec.template.spec.livenessProbe", "it belongs deeper, as spec.template.spec.containers[].livenessProbe"),
        ("spec.template.spec.containers[0].readinesProbe", "did you mean readinessProbe?"),
        ("spec.template.spec.terminationgraceperiodseconds", "did you mean terminationGracePeriodSeconds?"),
    ],
)  # fmt: skip
def test_a_key_in_the_wrong_place_is_told_where_it_belongs(tmp_path: Path, wrong: str, right: str) -> None:
    parent, _, key = wrong.rpartition(".")
    lines = (HERE / "planted" / "no-prestop.yaml").read_text().splitlines()
    before = {
        "spec": "  selector:",
        "spec.template.spec": "      containers:",
        "spec.template.spec.containers[0]": "          image:",
    }[parent]
    at = next(i for i, line in enumerate(lines) if line.startswith(before))
    lines.insert(at, f"{' ' * (len(before) - len(before.lstrip()))}{key}: {{}}")
    file = tmp_path / "m.yaml"
    file.write_text("\n".join(lines))
    [finding] = [f for f in look_at(file).open if f.rule.id == "unknown-field"]
    assert (finding.where.key, finding.where.line, finding.right) == (wrong, at + 1, right)


HPA: Json = {
    "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "llm", "namespace": "inference"},
    "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "llm"}, "maxReplicas": 4},
}  # fmt: skip


def deployment(**metadata: object) -> Json:
    return {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "llm", "namespace": "inference", **metadata},
        "spec": {"replicas": 2, "template": {"metadata": {"labels": {"app": "llm"}}, "spec": {"containers": []}}},
    }  # fmt: skip


def managed(manager: str, **more: str) -> list[Json]:
    return [{"manager": manager, "operation": "Apply", "fieldsV1": {"f:spec": {"f:replicas": {}}}, **more}]


@pytest.mark.parametrize(
    "metadata, found",
    [
        ({}, []),
        ({"managedFields": managed("argocd-controller")}, ["second-writer-of-replicas"]),
        ({"managedFields": managed("kustomize-controller")}, ["second-writer-of-replicas"]),
        ({"managedFields": managed("helm")}, ["second-writer-of-replicas"]),
        ({"managedFields": managed("kube-controller-manager", subresource="scale")}, []),
        ({"managedFields": managed("keda")}, []),
        (
            {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": '{"spec": {"replicas": 3}}'}},
            ["second-writer-of-replicas"],
        ),
        ({"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "no JSON"}}, []),
    ],
)
def test_in_a_cluster_the_writers_of_replicas_are_seen(metadata: Json, found: list[str]) -> None:
    assert ids(live(deployment(**metadata), HPA)) == found
    assert ids(live(deployment(**metadata))) == []  # without an autoscaler anybody may write them


def test_in_a_cluster_what_was_dropped_is_seen_in_what_was_applied() -> None:
    applied = '{"spec": {"template": {"spec": {"containers": [{"name": "a", "terminationGracePeriodSeconds": 300}]}}}}'
    found = live(deployment(annotations={"kubectl.kubernetes.io/last-applied-configuration": applied}))
    assert ids(found) == ["unknown-field"]
    assert str(found.open[0].where) == (
        "Deployment/inference/llm (spec.template.spec.containers[0].terminationGracePeriodSeconds)"
    )


def test_in_a_cluster_a_pod_group_that_is_not_there_is_seen() -> None:
    pod: Json = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "inference"},
        "spec": {"schedulingGroup": {"podGroupName": "train"}, "containers": [{"name": "a"}]},
    }  # fmt: skip
    group: Json = {
        "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "inference"},
    }  # fmt: skip
    assert ids(live(pod)) == ["gang-without-its-group"]
    assert ids(live(pod, group)) == []


def test_the_crds_among_the_objects_say_which_fields_their_kinds_have(tmp_path: Path) -> None:
    schema = "{type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}"
    (tmp_path / "m.yaml").write_text(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: fleets.example.com}\n"
        "spec:\n  group: example.com\n  names: {kind: Fleet, plural: fleets}\n  scope: Namespaced\n"
        f"  versions: [{{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {schema}}}}}]\n"
        "---\napiVersion: example.com/v1\nkind: Fleet\nmetadata: {name: a}\nspec: {sise: 3}\n"
    )
    [finding] = look_at(tmp_path).open
    assert (finding.rule.id, finding.where.key, finding.right) == ("unknown-field", "spec.sise", "did you mean size?")


def test_what_could_not_be_read_is_not_judged_by_its_absence() -> None:
    blind = Objects((Seen(deployment()),), live=True, blind=frozenset({"PodDisruptionBudget"}))
    found = look(blind, Accepts(), "a cluster")
    assert {rule.id for rule, why in found.not_judged if "could not be read" in why} == {
        rule.id for rule in RULES.values() if "PodDisruptionBudget" in rule.looks_at
    }
    assert found.exit_code(Severity.WARNING) == 2
