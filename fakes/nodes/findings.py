"""What an agent beside the kubelet says of the node: conditions of a type of its own, as node-problem-detector or a
cloud's node monitoring agent writes them. The kubelet has no say in them."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.kube.port import Json


@dataclass(slots=True)
class Findings:
    """By type of condition. One that was found once is reported ever after, also that all is well again."""

    _said: dict[str, tuple[str, str]] = field(default_factory=dict)

    def say(self, kind: str, status: str, now: str) -> None:
        """``status``: True or False, whichever of the two means trouble for this type."""
        if self._said.get(kind, ("",))[0] != status:
            self._said[kind] = (status, now)

    def conditions(self, now: str) -> list[Json]:
        return [
            {
                "type": kind,
                "status": status,
                "lastHeartbeatTime": now,
                "lastTransitionTime": since,
                "reason": f"{kind}Is{status}",
                "message": "reported by an agent on the node",
            }
            for kind, (status, since) in self._said.items()
        ]
