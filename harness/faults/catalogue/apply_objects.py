"""Objects arrive in the cluster by plan: a gang, a job, a quota. They carry the run's label and go with it."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from random import Random
from typing import ClassVar

from harness.errors import TargetError
from harness.faults.fault import Fault, Strike, Target
from harness.faults.fidelity import EVERYWHERE, FidelityMap
from harness.faults.objects import RUN_LABEL, label_of, namespace_of, read, ref_of, run_label
from harness.faults.port import Ground
from harness.faults.scene import Scene
from harness.faults.undo import DeleteObjects
from harness.kube.port import NAMESPACE, AlreadyExists
from harness.spec.model import Text


class ApplyObjects(Fault):
    """Blast radius: the objects of one manifest, created, never changed where they exist already."""

    name: ClassVar[str] = "apply_objects"
    colour: ClassVar[str] = "#7f7f7f"
    kind: ClassVar[Target] = Target.OBJECTS
    disruptive: ClassVar[bool] = False
    fidelity: ClassVar[FidelityMap] = EVERYWHERE
    undone_by: ClassVar[tuple[str, ...]] = (DeleteObjects.kind,)

    manifest: Text

    def pick(self, scene: Scene, rng: Random) -> tuple[str, ...]:
        return tuple(scene.objects[self.manifest])

    def radius(self, scene: Scene, targets: Sequence[str]) -> dict[str, int]:
        return {"objects": len(targets)}

    def most_targets(self) -> int:
        return 10_000

    def seen_s(self) -> float:
        return 30.0

    def healed_s(self) -> float | None:
        return None  # undoing waits for them itself, and a pod has a grace of its own

    def namespaces(self, ground: Ground) -> tuple[str, ...]:
        """But those that the manifest itself brings."""
        objects = ground.manifest(self.manifest)
        own = {obj["metadata"]["name"] for resource, obj in objects if resource is NAMESPACE}
        asked = {namespace_of(resource, obj) for resource, obj in objects if resource is not NAMESPACE}
        return tuple(sorted(asked - own))

    async def inject(self, strike: Strike) -> None:
        ground = strike.ground
        label = _label(ground)
        objects = ground.manifest(self.manifest)
        strike.will_undo(DeleteObjects(label, tuple(ref_of(resource, obj) for resource, obj in objects)))
        for resource, obj in objects:
            labelled = deepcopy(obj)
            labelled["metadata"].setdefault("labels", {})[RUN_LABEL] = label
            try:
                await ground.kube.create(resource, labelled, namespace_of(resource, obj) or None)
            except AlreadyExists as error:
                raise TargetError(
                    f"{ref_of(resource, obj)} exists already, and {strike.fault_id} creates only what is new",
                    hint="delete it, or give the manifest's object another name",
                ) from error

    async def signs(self, strike: Strike) -> dict[str, str]:
        found: dict[str, str] = {}
        for resource, obj in strike.ground.manifest(self.manifest):
            ref = ref_of(resource, obj)
            served = await read(strike.ground.kube, ref)
            if served is not None and label_of(served) == _label(strike.ground):
                found[str(ref)] = f"the API serves {ref}"
        return found

    def expected(self) -> tuple[str, str]:
        return "the API serves all its objects", "is somebody deleting them at once?"


def _label(ground: Ground) -> str:
    return ground.label or run_label(ground.run_dir)
