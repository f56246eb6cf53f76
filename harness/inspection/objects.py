"""All that is looked at in one inspection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from harness.inspection.seen import Seen, dig, items, labels_of, mapping, read_selector, text
from harness.inspection.workloads import ADDED_PER_POD, RUNS_ON, Workload, asks_for_gpus_anywhere, workloads_of
from harness.selectors import Selector
from harness.spec.document import KeyPath

_NO_PODS = ("NodeClaim", "Node", "Workload")
"""Kinds with amounts of GPUs that are no pods' of their own."""


@dataclass(frozen=True)
class Known:
    """What nobody can see in the objects, as people say it."""

    longest_stream_s: float | None = None
    longest_stream_from: str = ""
    model_load_s: float | None = None


@dataclass(frozen=True)
class Objects:
    """All that is looked at in one inspection. ``live``: a cluster, where what is not here is not there; with manifests
    it may stand in another folder."""

    seen: tuple[Seen, ...]
    live: bool = False
    known: Known = field(default_factory=Known)
    blind: frozenset[str] = frozenset()
    """Kinds that could not be read, so that nothing may be said of their absence."""

    @cached_property
    def _by_kind(self) -> dict[str, list[Seen]]:
        found: dict[str, list[Seen]] = {}
        for seen in self.seen:
            found.setdefault(seen.kind, []).append(seen)
        return found

    def of(self, *kinds: str) -> Iterator[Seen]:
        for kind in kinds:
            yield from self._by_kind.get(kind, ())

    def of_group(self, group: str, *kinds: str) -> Iterator[Seen]:
        """``group`` is an API group, or its end (``x-k8s.io``)."""
        return (seen for seen in self.of(*kinds) if seen.group == group or seen.group.endswith(f".{group}"))

    @cached_property
    def workloads(self) -> list[Workload]:
        """Of every object that nobody else made."""
        return [workload for seen in self.seen for workload in workloads_of(seen)]

    @cached_property
    def gpu_servers(self) -> list[Workload]:
        """Pods that ask for GPUs, run on, and serve: they name a port, are asked whether they are ready, or a Service
        or an InferencePool selects them."""
        found = []
        for workload in self.workloads:
            if workload.object.kind not in RUNS_ON or not workload.asks_for_gpus:
                continue
            _, container = workload.main
            if items(container, "ports") or mapping(container, "readinessProbe") or self.fronts(workload):
                found.append(workload)
        return found

    def fronts(self, workload: Workload) -> list[Seen]:
        """Services and InferencePools that send traffic to its pods."""
        found = []
        for seen in self.of("Service", "InferencePool"):
            selector = mapping(seen.data, "spec", "selector")
            labels = labels_of(selector, "matchLabels") or labels_of(selector)
            if labels and seen.namespace == workload.namespace and labels.items() <= workload.labels.items():
                found.append(seen)
        return found

    def selected(self, budget: Seen) -> list[Workload] | None:
        """The workloads whose pods a PodDisruptionBudget selects; None where its selector cannot be read."""
        selector = read_selector(dig(budget.data, "spec", "selector"))
        if selector is None:
            return None
        found = [w for w in self.workloads if w.namespace == budget.namespace and selector.matches(w.labels)]
        return self.one_each(found, budget)

    def may_select(self, budget: Seen) -> bool:
        """Whether it selects pods by labels which only their controllers write: of a workload that is here, or of an
        object here whose kind's group stands in the label."""
        selector = read_selector(dig(budget.data, "spec", "selector"))
        if selector is None:
            return True
        described = {id(workload.object) for workload in self.workloads}
        groups = {s.group for s in self.seen if id(s) not in described}
        if any("/" in r.key and r.key.partition("/")[0] in groups for r in selector.requirements):
            return True
        for workload in self.workloads:
            hidden = [r for r in selector.requirements if ADDED_PER_POD.search(r.key) and r.key not in workload.labels]
            rest = Selector("", tuple(r for r in selector.requirements if r not in hidden))
            if hidden and workload.namespace == budget.namespace and rest.matches(workload.labels):
                return True
        return False

    @cached_property
    def unread(self) -> list[Seen]:
        """Objects whose pods would ask for GPUs, but where those stand is not known of their kind."""
        described = {id(workload.object) for workload in self.workloads}
        return [
            s for s in self.seen
            if id(s) not in described and s.kind not in _NO_PODS and not s.owner() and asks_for_gpus_anywhere(s.data)
        ]  # fmt: skip

    def one_each(self, found: Iterable[Workload], beside: Seen) -> list[Workload]:
        """Each object once. Where files hold variants of one object, the one that stands in the file of ``beside``."""
        kept: dict[tuple[str, KeyPath], Workload] = {}
        for workload in found:
            key = (workload.object.ref, workload.at)
            if key not in kept or workload.object.document_file == beside.document_file:
                kept[key] = workload
        return list(kept.values())

    def around(self, found: Iterable[Seen], beside: Seen) -> list[Seen]:
        """Where files hold variants of one object, and one stands in the file of ``beside``: that one. Else all."""
        listed = list(found)
        own = {seen.ref for seen in listed if seen.document_file == beside.document_file}
        return [seen for seen in listed if seen.ref not in own or seen.document_file == beside.document_file]

    def target_of(self, scaler: Seen, *at: str) -> Seen | None:
        """The object that an autoscaler names in ``spec.scaleTargetRef`` or at ``at``."""
        kind, name = target_name(scaler, *at)
        found = [s for s in self.of(kind) if s.name == name and s.namespace == scaler.namespace]
        beside = (s for s in found if s.document_file == scaler.document_file)
        return next(beside, found[0] if found else None)


def target_name(scaler: Seen, *at: str) -> tuple[str, str]:
    """Kind and name of what an autoscaler scales. KEDA takes a Deployment where no kind is written."""
    ref = mapping(scaler.data, *(at or ("spec", "scaleTargetRef")))
    return text(ref, "kind") or "Deployment", text(ref, "name")
