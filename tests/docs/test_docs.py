"""Docs tell the truth: generated pages are fresh, what they name exists, and no key of a file goes without a word."""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from fakes.config import PlantedBug
from harness.checks.slo import METRICS
from harness.history.scaleup import STAGES
from harness.spec import loadprofile, probes, settings, world
from harness.spec.model import SpecModel

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
FOLDERS = ("harness", "fakes", "tests", "docs", "experiments", "loadprofiles", "benchmarks", "controlplane")
FENCE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)


def ticked(page: Path) -> Iterator[str]:
    yield from re.findall(r"`([^`\n]+)`", FENCE.sub("", page.read_text(encoding="utf-8")))


def named_paths(page: Path) -> Iterator[str]:
    """What begins with one of our folders and holds no placeholder."""
    for text in ticked(page):
        path = text.split(" ")[0].rstrip(":,")
        if path.split("/")[0] in FOLDERS and "/" in path and not re.search(r"[<>…{]", path):
            yield path


def named_symbols(page: Path) -> Iterator[str]:
    yield from (text for text in ticked(page) if re.fullmatch(r"(harness|fakes)(\.\w+)+", text))


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["checks.md", "faults.md"])
def test_generated_pages_are_what_the_registries_say(name: str) -> None:
    wanted = generator().PAGES[name]()
    assert (DOCS / name).read_text(encoding="utf-8") == wanted, "run: python docs/generate.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_that_a_page_names_is_there(page: Path) -> None:
    missing = [path for path in named_paths(page) if not any(ROOT.glob(path.rstrip("/")))]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_symbol_that_a_page_names_is_there(page: Path) -> None:
    for symbol in named_symbols(page):
        try:
            importlib.import_module(symbol)
        except ModuleNotFoundError:
            module, _, name = symbol.rpartition(".")
            assert hasattr(importlib.import_module(module), name), symbol


def models_of_written_files() -> Iterator[type[SpecModel]]:
    for module in (settings, world, loadprofile, probes):
        for thing in vars(module).values():
            if isinstance(thing, type) and issubclass(thing, SpecModel) and thing.__module__ == module.__name__:
                yield thing


@pytest.mark.parametrize("model", list(models_of_written_files()), ids=lambda model: model.__name__)
def test_every_key_of_a_written_file_is_explained(model: type[SpecModel]) -> None:
    words = set(re.findall(r"\w+", (DOCS / "experiments.md").read_text(encoding="utf-8")))
    assert set(model.keys()) - words == set()


def test_every_planted_bug_is_explained() -> None:
    assert {bug.value for bug in PlantedBug} <= set(ticked(DOCS / "experiments.md"))


def test_every_latency_and_every_mark_is_explained() -> None:
    text = (DOCS / "metrics.md").read_text(encoding="utf-8")
    assert [name for name in (*METRICS, *STAGES) if not re.search(rf"[`| ]{re.escape(name)}[`| ]", text)] == []
