"""The workload is rolled out anew: with the same image under load, or with one that does not exist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from harness.errors import TargetError
from harness.faults.fault import Strike, Target, Variant
from harness.faults.fidelity import EVERYWHERE, FidelityMap
from harness.faults.holding import HoldFault
from harness.faults.permissions import Need
from harness.faults.port import Ground
from harness.faults.scene import Scene
from harness.faults.sight import container_states, pods_of, waiting_reasons
from harness.faults.undo import ObjectRef, RestoreFields
from harness.kube.port import DEPLOYMENT, REPLICA_SET, Json, NotFound
from harness.selectors import parse_selector
from harness.spec.model import Text

RESTARTED_AT = "gpu-harness.dev/restarted-at"
BAD_TAG = "missing"
NO_IMAGE = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull")
"""The last where the policy is Never, as for images that were loaded (kubernetes v1.37 pkg/kubelet/images)."""


class RolloutFault(HoldFault):
    """A Deployment's pod template is changed, and changed back after ``hold_s``, which rolls it out once more."""

    kind: ClassVar[Target] = Target.OBJECTS
    fidelity: ClassVar[FidelityMap] = EVERYWHERE
    undone_by: ClassVar[tuple[str, ...]] = (RestoreFields.kind,)

    deployment: Text

    def pick(self, scene: Scene, rng: object) -> tuple[str, ...]:
        return (f"Deployment/{self.deployment}",)

    async def remember(self, ground: Ground, targets: Sequence[str]) -> Mapping[str, str]:
        """The ReplicaSets that are there, and how many pods each wants."""
        sets = (await ground.kube.list(REPLICA_SET, ground.namespace)).items
        return {rs["metadata"]["name"]: str((rs.get("spec") or {}).get("replicas", 0)) for rs in sets}

    def needs(self, namespace: str) -> tuple[Need, ...]:
        return (Need(DEPLOYMENT, ("get", "patch"), namespace=namespace),)

    async def change(self, strike: Strike, template: Json, earlier: Json) -> None:
        namespace = strike.ground.namespace
        ours: Json = {"spec": {"template": template}}
        before: Json = {"spec": {"template": earlier}}
        strike.will_undo(RestoreFields(ObjectRef("apps/v1", "Deployment", self.deployment, namespace), ours, before))
        await strike.ground.kube.patch(DEPLOYMENT, self.deployment, ours, namespace)

    async def read(self, ground: Ground) -> Json:
        try:
            return await ground.kube.get(DEPLOYMENT, self.deployment, ground.namespace)
        except NotFound as error:
            raise TargetError(f"no Deployment {self.deployment} in namespace {ground.namespace}") from error


class RollingRestart(RolloutFault):
    """Blast radius: all pods of one Deployment, one after another as its strategy allows; twice, for changing back
    rolls out as well."""

    name: ClassVar[str] = "rolling_restart"
    colour: ClassVar[str] = "#98df8a"
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("under load", "kubectl rollout restart at noon", {"deployment": "llm", "hold_s": 240}),
    )

    def healed_s(self) -> float:
        return 600.0

    async def inject(self, strike: Strike) -> None:
        await self.read(strike.ground)
        ours: Json = {"metadata": {"annotations": {RESTARTED_AT: strike.fault_id}}}
        await self.change(strike, ours, {"metadata": {"annotations": {RESTARTED_AT: None}}})

    async def signs(self, strike: Strike) -> dict[str, str]:
        """Pods of the changed template: they carry what it says."""
        marked = [
            name
            for name, pod in (await pods_of(strike.ground)).items()
            if (pod["metadata"].get("annotations") or {}).get(RESTARTED_AT) == strike.fault_id
        ]
        target = f"Deployment/{self.deployment}"
        return (
            {target: f"{target}: {len(marked)} pods of the new template, {sorted(marked)[0]} first"} if marked else {}
        )

    def expected(self) -> tuple[str, str]:
        return "pods of the changed template exist", "kubectl rollout status; is the Deployment paused?"


class BadImage(RolloutFault):
    """Blast radius: one Deployment's new pods, which never start; how many old ones go is for its strategy to say."""

    name: ClassVar[str] = "bad_image"
    colour: ClassVar[str] = "#c7c7c7"
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("a tag that does not exist", "a typing error in a release", {"deployment": "llm", "hold_s": 90}),
    )

    async def inject(self, strike: Strike) -> None:
        deployment = await self.read(strike.ground)
        containers: list[Json] = deployment["spec"]["template"]["spec"]["containers"]
        bad = with_tag(str(containers[0]["image"]), BAD_TAG)
        # A merge patch replaces a list as a whole, so all containers are in it.
        ours: Json = {"spec": {"containers": [{**containers[0], "image": bad}, *containers[1:]]}}
        await self.change(strike, ours, {"spec": {"containers": containers}})

    async def signs(self, strike: Strike) -> dict[str, str]:
        target = f"Deployment/{self.deployment}"
        wanted = parse_selector(strike.ground.selector)
        for name, pod in (await pods_of(strike.ground)).items():
            if not wanted.matches(pod["metadata"].get("labels") or {}):
                continue
            stuck = waiting_reasons(pod).intersection(NO_IMAGE)
            if stuck and any(BAD_TAG in str(c.get("image", "")) for c in container_states(pod)):
                return {target: f"{target}: {name} waits in {', '.join(sorted(stuck))}"}
        return {}

    def expected(self) -> tuple[str, str]:
        return f"a new pod waits in {' or '.join(NO_IMAGE)}", "kubectl get pods; is the Deployment paused?"


def with_tag(image: str, tag: str) -> str:
    """In place of its tag or digest; a port of the registry is neither."""
    folder, slash, name = image.partition("@")[0].rpartition("/")
    return f"{folder}{slash}{name.partition(':')[0]}:{tag}"
