"""What the node image is made of, and how: Debian's packages, kind's own files from its Go module, the programs that
``python -m harness.stack build`` made. The image is kept by what this file does, so an edit of it makes a new one.
"""

from __future__ import annotations

import glob
import hashlib
import json
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from image_commands import ImageFailed, piped, run, shell

from harness.stack.cache import cache_dir
from harness.stack.catalogue import KUBE_PROXY
from harness.stack.component import MODULES
from harness.stack.find import Binaries

HERE = Path(__file__).resolve().parent
FILES = HERE / "node_image_files"
DEBIAN = "bookworm"
"""Its systemd still boots where cgroups are of version 1."""
PACKAGES = (
    "systemd", "systemd-sysv", "libseccomp2", "conntrack", "iptables", "nftables", "iproute2", "ethtool", "kmod",
    "mount", "util-linux", "procps", "pigz", "jq", "ca-certificates", "containerd", "runc",
    "containernetworking-plugins",
    "socat", "python3",
)  # fmt: skip
REGISTRY = "registry.k8s.io"
PAUSE, ETCD_IMAGE, COREDNS_IMAGE = "3.10", "3.7.0-0", "v1.14.6"
"""Tags that kubeadm 1.37.2 and kind 0.33 ask for (``kubeadm config images list``)."""
NODE_PYTHON = "localhost/node-python:1"
LIBRARIES = "/lib/x86_64-linux-gnu"
SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
Done = Callable[[str], None]


def build(name: str, binaries: Binaries, done: Done) -> None:
    base = debian(done)
    with tempfile.TemporaryDirectory(prefix="gpu-harness-node-") as work:
        root = Path(work) / "root"
        run("cp", "-a", "--reflink=auto", str(base), str(root))
        _install(root, binaries)
        done("files")
        archive = _system_images(Path(work), root, binaries)
        done("images of the system")
        _preload(Path(work), root, archive)
        done("preloaded")
        shell(
            f"tar -C {root} --exclude='./proc/*' --exclude='./sys/*' --exclude='./dev/*' -c . "
            f"| docker import - {name}-root"
        )
        # `docker import --change` knows no STOPSIGNAL.
        dockerfile = (
            f"FROM {name}-root\nENV container=docker PATH={SEARCHED}\n"
            'STOPSIGNAL SIGRTMIN+3\nENTRYPOINT ["/kind/bin/own-sysctls", "/sbin/init"]\n'
        )
        run("docker", "build", "-q", "-t", name, "-", given=dockerfile)
    done("imported")


def debian(done: Callable[[str], None]) -> Path:
    """Debian's packages in a folder of the cache; made whole or not at all."""
    packages = hashlib.sha256(",".join(PACKAGES).encode()).hexdigest()[:8]
    base = cache_dir() / "kind" / f"debian-{packages}"
    if not base.exists():
        base.parent.mkdir(parents=True, exist_ok=True)
        part = base.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        run("debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", DEBIAN, str(part), _mirror())
        for folder in ("var/lib/apt/lists", "var/cache/apt", "usr/share/doc", "usr/share/man", "usr/share/locale"):
            for path in (part / folder).glob("*"):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        part.rename(base)
        done("Debian's packages")
    return base


def _mirror() -> str:
    """Where apt itself has its packages from."""
    for file in sorted(glob.glob("/etc/apt/sources.list.d/*.sources")):
        if found := re.search(r"^URIs:\s*(\S+)", Path(file).read_text(), re.MULTILINE):
            return found.group(1)
    if found := re.search(r"^deb\s+(?:\[[^]]*\]\s*)?(\S+)", Path("/etc/apt/sources.list").read_text(), re.MULTILINE):
        return found.group(1)
    raise ImageFailed("apt on this machine has no source of Debian packages")


def _install(root: Path, binaries: Binaries) -> None:
    """What kind's own Dockerfile does, in its order."""
    for folder in ("kind/bin", "kind/manifests", "kind/cni", "etc/kubernetes/manifests", "opt/cni/bin"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    own = _kind_module() / "images" / "base" / "files"
    for folder in ("etc", "kind", "usr"):
        run("cp", "-r", "--no-preserve=mode", str(own / folder), str(root))
    for program in ("kubeadm", "crictl", "kubelet", "kubectl"):
        run("install", "-m755", str(binaries.found[program].path), str(root / "usr" / "bin"))
    for program in ("containerd", "ctr", "containerd-shim-runc-v2"):
        (root / "usr/local/bin" / program).symlink_to(f"/usr/bin/{program}")
    for plugin in ("ptp", "portmap", "host-local", "loopback", "bridge"):
        run("cp", "-f", str(root / "usr/lib/cni" / plugin), str(root / "opt/cni/bin"))
    (root / "kind/version").write_text(f"v{binaries.found['kubelet'].version}\n")
    shutil.copy(FILES / "default-cni.yaml", root / "kind/manifests")
    shutil.copy(FILES / "default-cni.py", root / "kind/cni")
    shutil.copy(FILES / "own-sysctls", root / "kind/bin")
    for path in (*(root / "kind/bin").iterdir(), root / "kind", *(root / "usr/local/bin").glob("*")):
        if not path.is_symlink():
            path.chmod(0o755)
    _quieten(root)
    _for_this_machine(root)
    spec = json.loads(run("ctr", "oci", "spec"))
    hooks = spec.setdefault("hooks", {}).setdefault("createContainer", [])
    hooks.append({"path": "/kind/bin/mount-product-files.sh"})
    spec["process"].pop("rlimits", None)
    (root / "etc/containerd/cri-base.json").write_text(json.dumps(spec))


def _quieten(root: Path) -> None:
    """Units that are of no use in a container, and settings that are the machine's and not the node's."""
    units = ["lib/systemd/system/multi-user.target.wants/*", "lib/systemd/system/local-fs.target.wants/*"]
    units += ["lib/systemd/system/basic.target.wants/*", "etc/systemd/system/*.wants/*"]
    units += ["lib/systemd/system/sockets.target.wants/*udev*", "lib/systemd/system/sockets.target.wants/*initctl*"]
    units += ["lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service"]
    units += ["usr/lib/sysctl.d/50-pid-max.conf", "usr/lib/sysctl.d/99-protect-links.conf"]
    for pattern in units:
        for path in root.glob(pattern):
            path.unlink()
    with (root / "etc/systemd/journald.conf").open("a") as journald:
        journald.write("ReadKMsg=no\n")
    chroot = ("chroot", str(root), "systemctl", "-q")
    run(*chroot, "enable", "kubelet.service", "containerd.service", "undo-mount-hacks.service")
    run(*chroot, "mask", "systemd-binfmt.service", "proc-sys-fs-binfmt_misc.automount")


def _for_this_machine(root: Path) -> None:
    """What a machine asks for that may not lower an oom_score_adj and whose cgroups are of version 1: the kubelet has
    no flag for the latter, so kubeadm's file is changed before its start."""
    config = root / "etc/containerd/config.toml"
    plugin = '[plugins."io.containerd.grpc.v1.cri"]\n'
    text = config.read_text().replace("restrict_oom_score_adj = false", "restrict_oom_score_adj = true")
    config.write_text(text.replace(plugin, plugin + "  disable_apparmor = true\n"))
    unit = root / "etc/systemd/system/kubelet.service.d/20-cgroups-v1.conf"
    config_file = "/var/lib/kubelet/config.yaml"
    line = f"test ! -f {config_file} || grep -q failCgroupV1 {config_file} || echo failCgroupV1: false >>{config_file}"
    unit.write_text(f"[Service]\nExecStartPre=/bin/sh -c '{line}'\n")


def _kind_module() -> Path:
    return Path(run("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kind", cwd=MODULES / "kind").strip())


# -- the images that kubeadm asks for


def _system_images(work: Path, root: Path, binaries: Binaries) -> Path:
    version = f"v{binaries.found['kubelet'].version}"
    pause = work / "pause"
    run(
        "go",
        "build",
        "-trimpath",
        "-ldflags",
        "-s -w",
        "-o",
        str(pause),
        ".",
        cwd=HERE / "pause",
        env={"CGO_ENABLED": "0"},
    )
    names = []

    def image(name: str, files: Iterable[tuple[Path, str]], *changes: str) -> None:
        layer = work / "layer"
        shutil.rmtree(layer, ignore_errors=True)
        for folder in ("tmp", "etc", "proc", "sys", "dev", "var", "run"):
            (layer / folder).mkdir(parents=True)
        for source, at in files:
            target = layer / at.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            run("cp", "-a", "-L" if source.is_file() else "-d", str(source), str(target)) if not source.is_dir() else (
                shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
            )
        flags = [word for change in changes for word in ("--change", change)]
        path = f"ENV PATH={SEARCHED}"
        command = ["docker", "import", "--change", path, *flags, "-", name]
        piped(["tar", "-C", str(layer), "-c", "."], command)
        names.append(name)

    for program in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        image(f"{REGISTRY}/{program}:{version}", [(binaries.found[program].path, f"/usr/local/bin/{program}")])
    image(f"{REGISTRY}/etcd:{ETCD_IMAGE}", [(binaries.found["etcd"].path, "/usr/local/bin/etcd")])
    image(f"{REGISTRY}/kube-proxy:{version}", _with_firewall(root, binaries.found[KUBE_PROXY.name].path))
    image(
        f"{REGISTRY}/coredns/coredns:{COREDNS_IMAGE}",
        [(binaries.found["coredns"].path, "/coredns")],
        'ENTRYPOINT ["/coredns"]',
    )
    image(f"{REGISTRY}/pause:{PAUSE}", [(pause, "/pause")], 'ENTRYPOINT ["/pause"]')
    run("docker", "tag", f"{REGISTRY}/pause:{PAUSE}", f"{REGISTRY}/pause:{PAUSE}.2")
    names.append(f"{REGISTRY}/pause:{PAUSE}.2")
    image(NODE_PYTHON, _with_python(root))
    archive = work / "system.tar"
    run("docker", "save", "-o", str(archive), *names)
    run("docker", "rmi", "-f", *names)
    return archive


def _with_firewall(root: Path, kube_proxy: Path) -> list[tuple[Path, str]]:
    programs = [
        "/usr/sbin/xtables-nft-multi",
        "/usr/sbin/xtables-legacy-multi",
        "/usr/sbin/nft",
        "/usr/sbin/conntrack",
        "/usr/bin/ip",
    ]
    programs = [p for p in programs if (root / p.lstrip("/")).exists()]
    modules = [f"/{p.relative_to(root)}" for p in (root / "usr/lib/x86_64-linux-gnu/xtables").glob("*.so")]
    files = _inside(root, [*programs, *modules, *_libraries(root, [*programs, *modules])])
    multi = root / "usr/sbin/xtables-nft-multi"
    files += [
        (multi, f"/usr/sbin/{family}tables{verb}")
        for family in ("ip", "ip6")
        for verb in ("", "-save", "-restore", "-nft", "-nft-save", "-nft-restore")
    ]
    return [(kube_proxy, "/usr/local/bin/kube-proxy"), *files]


def _with_python(root: Path) -> list[tuple[Path, str]]:
    real = (root / "usr/bin/python3").resolve().name
    version = real.removeprefix("python")
    modules = [f"/{p.relative_to(root)}" for p in (root / f"usr/lib/python{version}/lib-dynload").glob("*.so")]
    programs = [f"/usr/bin/{real}", "/usr/bin/ip"]
    files = _inside(root, [*programs, *_libraries(root, [*programs, *modules])])
    return [
        *files,
        (root / f"usr/bin/{real}", "/usr/bin/python3"),
        (root / f"usr/lib/python{version}", f"/usr/lib/python{version}"),
    ]


def _inside(root: Path, paths: Sequence[str]) -> list[tuple[Path, str]]:
    """Each file of ``root``, links followed within it, with the place where it is looked for."""
    found = []
    for path in dict.fromkeys(paths):
        real = run("chroot", str(root), "readlink", "-f", path).strip()
        found.append((root / real.lstrip("/"), path))
    return found


def _libraries(root: Path, programs: Sequence[str]) -> list[str]:
    said = run("chroot", str(root), "ldd", *programs)
    return sorted(
        {
            word
            for word in said.split()
            if word.startswith("/") and not word.endswith(":") and (root / word.lstrip("/")).exists()
        }
    )


def _preload(work: Path, root: Path, archive: Path) -> None:
    """Puts the images into the content store of the node's container runtime, by one that lives for this only."""
    state = work / "containerd"
    state.mkdir()
    store = root / "var/lib/containerd"
    shutil.rmtree(store, ignore_errors=True)
    store.mkdir(parents=True)
    socket = state / "s"
    (state / "config.toml").write_text(
        f'version = 2\nroot = "{store}"\nstate = "{state}/state"\n'
        f'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n[grpc]\n  address = "{socket}"\n'
    )
    with (state / "log").open("wb") as log:
        runtime = subprocess.Popen(["containerd", "-c", str(state / "config.toml")], stdout=log, stderr=log)
    try:
        ctr = ["ctr", "-a", str(socket)]
        deadline = time.monotonic() + 30
        while subprocess.run([*ctr, "version"], capture_output=True).returncode != 0:
            if time.monotonic() > deadline or runtime.poll() is not None:
                raise ImageFailed(f"containerd did not start: {(state / 'log').read_text(errors='replace')[-800:]}")
            time.sleep(0.1)
        run(*ctr, "-n", "k8s.io", "images", "import", "--no-unpack", str(archive))
    finally:
        runtime.terminate()
        runtime.wait()
