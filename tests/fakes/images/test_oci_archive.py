"""Archives that container engines read, with the same bytes for the same content; and what goes into our image."""

from __future__ import annotations

import hashlib
import json
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fakes.images.layer import NoSuchProgram, stage_base, write_layer
from fakes.images.oci import Run, write_archive
from fakes.images.python_image import FAKES, closure, pause_image


def _layer(tmp_path: Path, name: str, content: str) -> Path:
    root = tmp_path / f"root-{name}"
    (root / "tmp").mkdir(parents=True)
    (root / "file").write_text(content)
    path = tmp_path / f"{name}.tar"
    write_layer(path, root)
    return path


def _read(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        return {m.name: file.read() for m in tar.getmembers() if (file := tar.extractfile(m)) is not None}


def test_an_archive_names_its_image_and_every_blob_is_what_its_digest_says(tmp_path: Path) -> None:
    layers = [_layer(tmp_path, "a", "lower"), _layer(tmp_path, "b", "upper")]
    archive = tmp_path / "image.oci"
    write_archive(archive, ["localhost/a:1", "docker.io/x/b:v2"], layers, Run(("python3",), ("A=1",)))
    files = _read(archive)
    blobs = {name.removeprefix("blobs/sha256/"): content for name, content in files.items() if "blobs" in name}
    assert len(blobs) == 4
    for digest, content in blobs.items():
        assert hashlib.sha256(content).hexdigest() == digest
    manifests = json.loads(files["index.json"])["manifests"]
    assert [m["annotations"]["io.containerd.image.name"] for m in manifests] == ["localhost/a:1", "docker.io/x/b:v2"]
    manifest = json.loads(blobs[manifests[0]["digest"].removeprefix("sha256:")])
    config = json.loads(blobs[manifest["config"]["digest"].removeprefix("sha256:")])
    assert config["config"]["Entrypoint"] == ["python3"]
    assert config["rootfs"]["diff_ids"] == [layer["digest"] for layer in manifest["layers"]]
    assert json.loads(files["manifest.json"])[0]["RepoTags"] == ["localhost/a:1", "docker.io/x/b:v2"]


def test_the_same_content_is_the_same_bytes(tmp_path: Path) -> None:
    archives = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        archives.append(folder / "image.oci")
        write_archive(archives[-1], ["localhost/a:1"], [_layer(folder, "a", "same")], Run(("sh",)))
    assert archives[0].read_bytes() == archives[1].read_bytes()


def test_runs_that_begin_at_once_make_the_same_image_of_one_layer(tmp_path: Path) -> None:
    archives = [tmp_path / f"{n}.oci" for n in range(8)]
    with ThreadPoolExecutor(len(archives)) as runs:
        for ended in [runs.submit(pause_image, archive, tmp_path / "cache") for archive in archives]:
            ended.result()
    assert len({archive.read_bytes() for archive in archives}) == 1
    assert len(list((tmp_path / "cache").glob("pause-*.tar"))) == 1


def test_a_layer_belongs_to_root_and_has_no_times(tmp_path: Path) -> None:
    with tarfile.open(_layer(tmp_path, "a", "x")) as layer:
        members = {m.name: m for m in layer.getmembers()}
    assert {(m.uid, m.gid, m.mtime) for m in members.values()} == {(0, 0, 0)}
    assert members["tmp"].mode == 0o1777


def test_a_program_brings_its_libraries(tmp_path: Path) -> None:
    stage_base(tmp_path, ["sh"])
    assert (tmp_path / "bin/sh").exists()
    assert list(tmp_path.rglob("libc.so*")) or list(tmp_path.rglob("ld-*"))
    with pytest.raises(NoSuchProgram, match="no-such-program"):
        stage_base(tmp_path, ["no-such-program"])


def test_packages_come_with_what_they_require_and_nothing_optional() -> None:
    names = closure(FAKES)
    assert {"aiohttp", "multidict", "grpcio", "protobuf", "pyyaml"} <= set(names)
    assert not {"pytest", "pandas", "kubernetes"} & set(names)
