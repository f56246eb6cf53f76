"""Data flows one way: which package may import what (docs/whats-here.md draws the same in words)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PURE = (
    "harness/spec", "harness/plan", "harness/history", "harness/checks", "harness/diagnosis", "harness/report",
    "harness/compare",
)  # fmt: skip
BELOW_A_RUN = ("harness/kube", "harness/processes", "harness/stack", "harness/targets", "harness/faults")
CLOCKS_AND_NETWORK = {
    "time", "asyncio", "socket", "httpx", "aiohttp", "kubernetes", "locust", "gevent", "chaoslib", "subprocess",
    "urllib.request", "requests", "threading", "harness.run", "harness.processes", "harness.targets",
    "harness.kube.http", "fakes",
}  # fmt: skip

VIRTUAL = "harness/run/virtual/"
REAL_WORLD = {
    "time", "socket", "threading", "subprocess", "httpx", "aiohttp", "kubernetes", "locust", "gevent", "chaoslib",
    "harness.kube.http", "harness.run.load.client", "harness.run.load.openloop", "harness.processes.children",
    "harness.run.chaos", "harness.run.supervisor",
}  # fmt: skip


def modules(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def under(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def importers_of(package: str, folder: str) -> set[str]:
    found = (f for f in modules(folder) if any(under(name, package) for name in imports(f)))
    return {str(f.relative_to(ROOT)) for f in found}


@pytest.mark.parametrize("folder", PURE)
def test_pure_packages_import_no_clock_no_network_no_cluster(folder: str) -> None:
    bad = {
        f"{file.relative_to(ROOT)} imports {name}"
        for file in modules(folder)
        for name in imports(file)
        if any(under(name, banned) for banned in CLOCKS_AND_NETWORK)
    }
    assert bad == set()


@pytest.mark.parametrize("folder", BELOW_A_RUN)
def test_what_runs_stand_on_knows_no_run(folder: str) -> None:
    assert importers_of("harness.run", folder) == set()


def test_fakes_import_nothing_of_the_harness_but_the_kube_port() -> None:
    bad = {
        f"{file.relative_to(ROOT)} imports {name}"
        for file in modules("fakes")
        for name in imports(file)
        if under(name, "harness") and not under(name, "harness.kube.port") and name not in ("harness.kube", "harness")
    }
    assert bad == set()


def test_the_harness_knows_the_fakes_only_as_a_target_or_in_virtual_time() -> None:
    found = {f for f in importers_of("fakes", "harness") if not f.startswith(VIRTUAL)}
    types = "harness/inspection/types.py"  # which fields a kind has, as Kubernetes' sources say: one table of them
    assert {f for f in found if not f.startswith("harness/targets/")} <= {types}


def test_virtual_time_is_reached_by_its_command_only() -> None:
    found = {f for f in importers_of("harness.run.virtual", "harness") if not f.startswith(VIRTUAL)}
    assert found == {"harness/run/running.py"}


def test_nothing_real_takes_part_in_virtual_time() -> None:
    bad = {
        f"{file.relative_to(ROOT)} imports {name}"
        for file in modules(VIRTUAL)
        for name in imports(file)
        if any(under(name, banned) for banned in REAL_WORLD)
    }
    assert bad == set()


def test_locust_and_gevent_stay_with_the_load() -> None:
    allowed = "harness/run/load/"
    assert {f for p in ("locust", "gevent") for f in importers_of(p, "harness") if not f.startswith(allowed)} == set()


def test_chaos_toolkit_stays_with_its_extension() -> None:
    assert {f for f in importers_of("chaoslib", "harness") if not f.startswith("harness/run/chaos/")} == set()


def test_one_module_of_the_harness_opens_connections_to_kubernetes() -> None:
    assert importers_of("kubernetes", "harness") == {"harness/kube/http.py"}


def test_the_world_takes_its_time_from_the_loop_and_its_chance_from_a_seed() -> None:
    bad = {
        f"{file.relative_to(ROOT)} imports {name}"
        for folder in ("fakes", "harness/faults")
        for file in modules(folder)
        for name in imports(file)
        if name in ("time", "time.time", "time.monotonic", "time.sleep", "secrets", "uuid.uuid4")
        or (under(name, "random") and name not in ("random", "random.Random"))
    }
    assert bad == set()


def test_helper_modules_of_tests_have_names_of_their_own() -> None:
    """Folders of tests are no packages: their helper modules share one namespace, and the first of a name wins."""
    tests = ROOT / "tests"
    folders = {path.parent for path in tests.rglob("test_*.py")} | {tests / "histories"}
    found: dict[str, list[Path]] = {}
    for path in sorted(path for folder in folders for path in folder.glob("*.py") if path.stem != "conftest"):
        found.setdefault(path.stem, []).append(path)
    assert not {name: paths for name, paths in found.items() if len(paths) > 1}
