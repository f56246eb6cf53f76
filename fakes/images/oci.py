"""Container images as OCI archives, made without a registry, a builder or a container engine.

``ctr images import``, ``docker load`` and ``kind load image-archive`` take them. The same content gives the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
"""Not compressed: an archive never leaves the machine, and unpacking costs more than reading."""
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
PATH_ENV = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Run:
    """What a container of the image runs, unless its pod says otherwise."""

    entrypoint: tuple[str, ...]
    env: tuple[str, ...] = ()


def write_archive(path: Path, names: Sequence[str], layers: Sequence[Path], run: Run) -> None:
    """One image under all of ``names`` (``registry/name:tag``). ``layers`` are tar files, the lowest first."""
    digests = [_digest_of(layer) for layer in layers]
    config = _json(
        {
            "created": "1970-01-01T00:00:00Z",
            **_platform(),
            "config": {"Env": [PATH_ENV, *run.env], "Entrypoint": list(run.entrypoint), "WorkingDir": "/"},
            "rootfs": {"type": "layers", "diff_ids": digests},
        }
    )
    described = [
        {"mediaType": LAYER, "digest": digest, "size": layer.stat().st_size}
        for digest, layer in zip(digests, layers, strict=True)
    ]
    manifest = _json(
        {"schemaVersion": 2, "mediaType": MANIFEST, "config": _descriptor(CONFIG, config), "layers": described}
    )
    index = {"schemaVersion": 2, "manifests": [_named(_descriptor(MANIFEST, manifest), name) for name in names]}
    part = path.with_name(f".{path.name}.part")
    with tarfile.open(part, "w") as archive:
        _put(archive, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        _put(archive, "index.json", _json(index))
        # docker load reads only this one.
        blobs = [_blob(digest) for digest in digests]
        docker = [{"Config": _blob(_sha256(config)), "RepoTags": list(names), "Layers": blobs}]
        _put(archive, "manifest.json", _json(docker))
        for blob in (config, manifest):
            _put(archive, _blob(_sha256(blob)), blob)
        for digest, layer in dict(zip(digests, layers, strict=True)).items():
            entry = tarfile.TarInfo(_blob(digest))
            entry.size = layer.stat().st_size
            with layer.open("rb") as content:
                archive.addfile(entry, content)
    part.rename(path)


def _named(descriptor: dict[str, Any], name: str) -> dict[str, Any]:
    annotations = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rpartition(":")[2]}
    return descriptor | {"annotations": annotations, "platform": _platform()}


def _platform() -> dict[str, str]:
    machine = platform.machine()
    return {"architecture": ARCHITECTURES.get(machine, machine), "os": "linux"}


def _descriptor(media_type: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": _sha256(blob), "size": len(blob)}


def _blob(digest: str) -> str:
    return "blobs/sha256/" + digest.removeprefix("sha256:")


def _put(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _sha256(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
