"""The device plugin's image definition copies all that the program imports, and installs what it needs of others."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml

from fakes.device_plugin.__main__ import _parser

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "fakes/device_plugin"
DOCKERFILE = (FOLDER / "Dockerfile").read_text()


def test_what_it_copies_is_enough(tmp_path: Path) -> None:
    for line in re.findall(r"^COPY (.+)$", DOCKERFILE, re.MULTILINE):
        *sources, place = line.split()
        for source in sources:
            target = tmp_path / place
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, target, dirs_exist_ok=True)
            else:
                target.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, target)
    # Isolated from this checkout, which is on the path of the tests: only the copy may be found.
    run = f"import runpy, sys; sys.path.insert(0, {str(tmp_path)!r}); import fakes; "
    run += f"assert fakes.__file__.startswith({str(tmp_path)!r}), fakes.__file__; sys.argv = ['plugin', '--help']; "
    run += "runpy.run_module('fakes.device_plugin', run_name='__main__')"
    said = subprocess.run([sys.executable, "-I", "-c", run], capture_output=True, text=True, check=False)
    assert (said.returncode, "--resources" in said.stdout) == (0, True), said.stderr


def test_it_installs_what_the_extra_names() -> None:
    (install,) = re.findall(r"^RUN pip install .*$", DOCKERFILE, re.MULTILINE)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert re.findall(r'"([^"]+)"', install) == extras["device-plugin"]


def test_the_daemon_set_calls_it_as_it_wants_to_be_called() -> None:
    pod = yaml.safe_load((FOLDER / "daemonset.yaml").read_text())["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    args = _parser().parse_args(container["args"])
    assert str(args.switches) == "/var/lib/gpu-harness/switches.json"
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts == {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"]}
