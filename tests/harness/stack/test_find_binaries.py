"""Real programs are found in a stated order, and what is wrong with the others is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import script, versioned

from harness.errors import BadInput, TargetError
from harness.stack.catalogue import COMPONENTS, CONTROL_PLANE, ETCD, KUBE_APISERVER
from harness.stack.find import find_binaries


def env(tmp_path: Path, **places: Path) -> dict[str, str]:
    return {"PATH": "/nowhere", "XDG_CACHE_HOME": str(tmp_path / "cache")} | {k: str(v) for k, v in places.items()}


def test_the_order_is_bin_dir_assets_path_cache(tmp_path: Path) -> None:
    for folder in ("given", "assets", "path", "cache/gpu-harness/bin"):
        versioned(tmp_path / folder, "etcd", "etcd Version: 3.7.3")
    places = env(tmp_path, KUBEBUILDER_ASSETS=tmp_path / "assets", PATH=tmp_path / "path")
    for place in ("given", "assets", "path", "cache/gpu-harness/bin"):
        found = find_binaries([ETCD], tmp_path / "given", places)
        assert found.path(ETCD) == str(tmp_path / place / "etcd")
        Path(found.path(ETCD)).unlink()
    with pytest.raises(TargetError, match=r"etcd 3\.6 or 3\.7"):
        find_binaries([ETCD], tmp_path / "given", places)


def test_each_program_is_looked_for_by_itself(tmp_path: Path) -> None:
    versioned(tmp_path / "assets", "etcd", "etcd Version: 3.6.5")
    versioned(tmp_path / "path", "kube-apiserver", "Kubernetes v1.37.0")
    places = env(tmp_path, KUBEBUILDER_ASSETS=tmp_path / "assets", PATH=tmp_path / "path")
    assert find_binaries([ETCD, KUBE_APISERVER], None, places).versions() == {
        "etcd": "3.6.5",
        "kube-apiserver": "1.37.0",
    }


def test_another_version_is_passed_over_and_named_when_there_is_no_better(tmp_path: Path) -> None:
    versioned(tmp_path / "path", "kube-apiserver", "Kubernetes v1.30.2")
    places = env(tmp_path, PATH=tmp_path / "path")
    with pytest.raises(TargetError) as refused:
        find_binaries(CONTROL_PLANE, None, places)
    said = str(refused.value)
    assert f"kube-apiserver 1.37; {tmp_path}/path/kube-apiserver is version 1.30.2" in said
    assert all(component.name in said for component in CONTROL_PLANE)
    assert "make controlplane" in said
    versioned(tmp_path / "cache/gpu-harness/bin", "kube-apiserver", "Kubernetes v1.37.2")
    assert find_binaries([KUBE_APISERVER], None, places).versions() == {"kube-apiserver": "1.37.2"}


def test_another_version_in_bin_dir_is_refused_outright(tmp_path: Path) -> None:
    versioned(tmp_path / "given", "etcd", "etcd Version: 3.4.1")
    versioned(tmp_path / "path", "etcd", "etcd Version: 3.7.3")
    with pytest.raises(BadInput, match=r"etcd is version 3\.4\.1, needed is 3\.6 or 3\.7"):
        find_binaries([ETCD], tmp_path / "given", env(tmp_path, PATH=tmp_path / "path"))
    with pytest.raises(BadInput, match="no such folder"):
        find_binaries([ETCD], tmp_path / "absent", env(tmp_path))


@pytest.mark.parametrize("text", ["#!/bin/sh\nexit 3\n", "#!/bin/sh\necho no number\n", "#!/absent/interpreter\n"])
def test_a_program_that_does_not_say_its_version_is_none(tmp_path: Path, text: str) -> None:
    script(tmp_path / "path", "etcd", text)
    with pytest.raises(TargetError, match="does not say its version"):
        find_binaries([ETCD], None, env(tmp_path, PATH=tmp_path / "path"))


def test_a_release_is_a_prefix_of_whole_numbers() -> None:
    assert KUBE_APISERVER.takes("1.37.12")
    assert not KUBE_APISERVER.takes("1.370.1")


def test_every_component_has_its_module_and_is_pinned_there() -> None:
    for component in COMPONENTS.values():
        module = (component.folder / "go.mod").read_text()
        assert f"\t{component.package}\n" in module or f"tool {component.package}\n" in module
        assert (component.folder / "go.sum").stat().st_size > 0


def test_a_built_program_that_was_cut_short_is_passed_over(tmp_path: Path) -> None:
    built = tmp_path / "cache/gpu-harness/bin"
    versioned(built, "etcd", "etcd Version: 3.7.3")
    (built / "etcd.json").write_text('{"size": 4711}')
    with pytest.raises(TargetError, match=r"etcd has \d+ bytes of the 4711 that were built"):
        find_binaries([ETCD], None, env(tmp_path))
    for note in ("", "nonsense", "[]", '{"recipe": 1}'):
        (built / "etcd.json").write_text(note)
        assert find_binaries([ETCD], None, env(tmp_path)).versions() == {"etcd": "3.7.3"}
