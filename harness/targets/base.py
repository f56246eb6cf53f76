"""What every target gives: a connection, and a way down again. Nothing after ``up`` knows which target it runs on."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from typing import Protocol, get_origin, get_type_hints

from harness.errors import TargetError
from harness.faults.pick import FleetNode
from harness.kube.http import HttpKube

CONNECTION_FILE = "connection.json"
CONNECTION_ENV = "GPU_HARNESS_CONNECTION"
BOOKMARK_S = 60.0
"""Of a real API server, whatever the time scale: no flag changes it (kubernetes v1.37, k8s.io/apiserver
storage/cacher, ``defaultBookmarkFrequency``)."""


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach a cluster that is up. Carries no secret: credentials are in the kubeconfig file.

    ``service_url`` is the base of the OpenAI-compatible endpoint that the load goes to; ``control_url`` the control
    plane of the fakes (cloud), None on a cluster that has none.
    """

    target: str
    kubeconfig: Path
    service_url: str
    control_url: str | None
    namespace: str
    time_scale: float
    bookmark_s: float = BOOKMARK_S
    """Clock seconds after which the API server sends a bookmark on every watch."""
    fingerprint: str = ""
    """The uid of kube-system: which cluster this is, whoever answers at its address later."""
    undo_in_cluster: bool = False
    """Whether the undo journal is kept in the cluster as well, for another machine that would heal it."""
    stack_url: str | None = None
    """Where the cluster's real programs are listed, stopped, killed and started again (``harness.stack.control``)."""
    world: str = ""
    """The file of the emulated world, where objects have to be made ready for real components; else empty."""
    stack: tuple[str, ...] = ()
    """The real components that were brought up beside the control plane."""
    context: str = ""
    """Of the kubeconfig; empty for its current one. In a file of others somebody may make another one current while the
    run lasts, and neither a fault nor an undo may follow."""
    host: str = field(default_factory=socket.gethostname)
    """On which machine the addresses of this machine (127.0.0.1) mean what they say."""

    def kube(self) -> HttpKube:
        """The cluster that the run was begun on. To be entered, as any client that holds connections."""
        return HttpKube(self.kubeconfig, self.context)

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self) | {"kubeconfig": str(self.kubeconfig)}, indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> Connection:
        try:
            raw = json.loads(path.read_text())
            typed = {"kubeconfig": Path(raw["kubeconfig"]), "stack": tuple(raw.get("stack", ()))}
            connection = cls(**(raw | typed))
            connection._check_types()
            return connection
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise TargetError(
                f"no connection to read in {path}: {error}", hint="start a cluster with `gpu-harness up`"
            ) from error

    def _check_types(self) -> None:
        """ValueError for a file that no run of ours wrote, before somebody stumbles over what stands in it."""
        for name, hint in get_type_hints(type(self)).items():
            value, kind = getattr(self, name), tuple if get_origin(hint) is tuple else hint
            kind = int | float if kind is float else kind
            if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
                raise ValueError(f"{name} is {value!r}")
        if not 0 < self.time_scale < inf:
            raise ValueError(f"time_scale is {self.time_scale!r}")


class Described(Protocol):
    """What every report says of a target."""

    name: str
    real: tuple[str, ...]
    """What of this target is the real thing, and what is emulated."""
    emulated: tuple[str, ...]

    @property
    def versions(self) -> Mapping[str, str]:
        """Of the real programs that it runs."""
        ...


class Target(Described, Protocol):
    """``up`` is called once. ``died`` says why the cluster is no longer there, None while it is; ``log`` is where the
    words of what died are kept."""

    @property
    def log(self) -> Path: ...

    async def up(self) -> Connection: ...

    async def down(self) -> None: ...

    def died(self) -> str | None: ...

    def planned_fleet(self) -> Sequence[FleetNode]:
        """The nodes as they will be at the start, for a plan that touches nothing."""
        ...
