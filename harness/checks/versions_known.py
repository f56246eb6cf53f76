"""It is known what was tested: the versions of the harness, of Kubernetes, and of the system under test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.checks.units import count, listed
from harness.history.lives import Json, workload_pods
from harness.history.tables import VERSION_MARK
from harness.verdict import Evidence, Finding, Role, Status, Value

if TYPE_CHECKING:
    from harness.history.reader import History

_OURS = "gpu-harness"
_NO_VERSION = frozenset({"", "latest"})
"""Tags that may mean another image tomorrow."""


def versions_known(history: History) -> Finding:
    """An image counts as known by the digest that its node reported, or by a tag other than ``latest``.

    That the API server became another version in the middle of the run is a failure of it.

    UNKNOWN when one of them is not known: the harness was not installed as a package, the server did not say, no pod of
    the workload was seen, or its image names no version.
    """
    ours = history.run.versions.get(_OURS, "")
    ours = ours if ours[:1].isdigit() else ""
    marks = [mark for mark in history.marks if mark.name == VERSION_MARK and mark.value]
    servers = list(dict.fromkeys(mark.value for mark in sorted(marks, key=lambda mark: mark.t_ns)))
    images: dict[str, bool] = {}
    for pod in workload_pods(history):
        for image, known in _images(pod.last):
            images[image] = images.get(image, False) or known
    vague = sorted(image for image, known in images.items() if not known)
    missing = [
        text
        for applies, text in (
            (not ours, "of the harness"),
            (not servers, "of Kubernetes"),
            (not images, "of the workload, of which no pod was seen"),
            (bool(vague), f"of the image {listed(vague)}"),
        )
        if applies
    ]
    numbers: dict[str, Value] = {
        "harness": ours or None,
        "kubernetes": ", ".join(servers) or None,
        "images": ", ".join(sorted(images)) or None,
    }
    if len(servers) > 1:
        status = Status.FAIL
        sentence = f"Kubernetes was {servers[0]} first and {servers[-1]} later, so no one version was tested"
    elif missing:
        status, sentence = Status.UNKNOWN, f"not known is the version {' and '.join(missing)}"
    else:
        status = Status.PASS
        told = f"{count(len(images), 'image')} of the workload: {listed(sorted(images), 3)}"
        sentence = f"harness {ours}, Kubernetes {servers[0]}, {told}"
    evidence = tuple(Evidence(f"marks:{mark.index}", mark.t_ns, f"Kubernetes {mark.value}") for mark in marks)
    exercised = bool(ours) + len(servers) + sum(images.values())
    return Finding("versions_known", Role.VALIDITY, status, sentence, exercised, numbers, evidence)


def _images(pod: Json) -> Iterator[tuple[str, bool]]:
    """Of each container, and whether it is known which one that is."""
    ids = {
        str(status.get("name")): str(status.get("imageID") or "")
        for status in pod.get("status", {}).get("containerStatuses") or ()
    }
    for container in pod.get("spec", {}).get("containers") or ():
        image = str(container.get("image") or "")
        name, _, digest = image.partition("@")
        tag = name.rpartition("/")[2].partition(":")[2]
        known = bool(digest) or "sha256:" in ids.get(str(container.get("name")), "") or tag not in _NO_VERSION
        yield image or "without a name", known
