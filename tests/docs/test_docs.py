"""Docs tell the truth: generated pages are fresh, what they name exists, and no key of a file goes without a word."""

from __future__ import annotations

import importlib
import importlib.util
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest

from fakes.config import PlantedBug
from harness.checks.judge import CHECKS
from harness.checks.slo import METRICS
from harness.faults.registry import FAULTS
from harness.history.scaleup import STAGES
from harness.plan import plan_profile
from harness.spec import arrivals, loadprofile, mix, probes, settings, tokens, world
from harness.spec.loadprofile import load_profile
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


def test_a_latency_is_computed_in_one_place() -> None:
    """As docs/metrics.md says; the live view and Locust's page, which are never judged, have figures of their own."""
    sums = re.compile(r"(first_token_ns|last_token_ns)(\"\])? - |- \(?\w*(\.|\[\")?intended_ns")
    files = (file for file in (ROOT / "harness").rglob("*.py") if sums.search(file.read_text(encoding="utf-8")))
    places = {str(file.relative_to(ROOT)) for file in files}
    assert places == {"harness/checks/rows.py", "harness/run/load/locustfile.py"}


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_readme_counts_bugs_and_variants_as_they_are() -> None:
    said = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    bugs = re.findall(r"(\d+) planted bugs", said)
    variants = re.findall(r"Faults come in (\d+) variants", said)
    assert bugs == [str(len(PlantedBug))]
    assert variants == [str(sum(len(fault.variants) for fault in FAULTS.values()))]


@pytest.mark.parametrize("name", ["checks.md", "faults.md", "history.md"])
def test_generated_pages_are_what_the_registries_say(name: str) -> None:
    wanted = generator().PAGES[name]()
    assert (DOCS / name).read_text(encoding="utf-8") == wanted, "run: python docs/generate.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_that_a_page_names_is_there(page: Path) -> None:
    missing = [path for path in named_paths(page) if not any(ROOT.glob(path.rstrip("/")))]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_that_a_page_names_after_its_file_is_in_it(page: Path) -> None:
    """In a table's cell: the file, and then tests of it."""
    file, missing = "", []
    for text in ticked(page):
        if text.startswith("tests/") and text.endswith(".py"):
            file = text
        elif file and re.fullmatch(r"test_\w+", text) and f"def {text}(" not in (ROOT / file).read_text("utf-8"):
            missing.append(f"{file}::{text}")
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
    for module in (settings, world, loadprofile, arrivals, tokens, mix, probes):
        for thing in vars(module).values():
            if isinstance(thing, type) and issubclass(thing, SpecModel) and thing.__module__ == module.__name__:
                yield thing


@pytest.mark.parametrize("model", list(models_of_written_files()), ids=lambda model: model.__name__)
def test_every_key_of_a_written_file_is_explained(model: type[SpecModel]) -> None:
    pages = ("experiments.md", "load-profiles.md")
    words = {word for page in pages for word in re.findall(r"\w+", (DOCS / page).read_text(encoding="utf-8"))}
    assert set(model.keys()) - words == set()


def examples_of_load_profiles() -> list[str]:
    text = (DOCS / "load-profiles.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [block for block in blocks if "method:" not in block]


@pytest.mark.parametrize("number", range(len(examples_of_load_profiles())))
def test_the_worked_examples_can_be_planned(number: int, tmp_path: Path) -> None:
    (tmp_path / "load.yaml").write_text(examples_of_load_profiles()[number])
    stamps = (f"2023-11-16 18:{i // 60:02}:{i % 60:02},{50 + i},9" for i in range(600))
    trace = "\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *stamps])
    (tmp_path / "azure-llm-2023-conv.csv").write_text(trace)
    assert len(plan_profile(load_profile(tmp_path / "load.yaml"), 1, 20.0).schedule) > 100


def test_every_kind_of_arrivals_and_lengths_is_explained() -> None:
    ticks = set(ticked(DOCS / "load-profiles.md"))
    for union in (arrivals.Arrivals, tokens.Tokens):
        for model in get_args(get_args(union)[0]):
            assert get_args(model.model_fields["kind"].annotation)[0] in ticks


def test_every_planted_bug_is_explained() -> None:
    assert {bug.value for bug in PlantedBug} <= set(ticked(DOCS / "verdict-matrix.md"))


def test_every_check_shows_a_fail_of_its_own() -> None:
    examples = json.loads((DOCS / "failing-examples.json").read_text(encoding="utf-8"))
    assert list(examples) == list(CHECKS)
    for check, example in examples.items():
        assert example["story"].startswith("Promised: ") and "First cause: " in example["story"], check
        assert (DOCS.parent / example["experiment"]).is_file(), check


def test_every_latency_and_every_mark_is_explained() -> None:
    text = (DOCS / "metrics.md").read_text(encoding="utf-8")
    assert [name for name in (*METRICS, *STAGES) if not re.search(rf"[`| ]{re.escape(name)}[`| ]", text)] == []


def test_no_column_of_the_history_goes_without_a_word() -> None:
    rows = [line for line in (DOCS / "history.md").read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert len(rows) > 60
    assert [row for row in rows if "|  |" in row or row.endswith("|  |")] == []


def test_the_history_is_read_with_plain_pandas_as_the_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (DOCS / "history.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(ROOT / "reports" / "sample")
    found: dict[str, Any] = {"opened": _opened}
    exec(snippet.replace("json.load(open(", "json.load(opened("), found)
    columns = set(found["objects"].columns)
    assert {"t_ns", "kind", "type", "object"} <= columns
    assert found["requests"]["at_s"].min() >= 0


def _opened(path: str) -> io.StringIO:
    """Files that are not closed are warnings, and warnings are errors here."""
    return io.StringIO(Path(path).read_text(encoding="utf-8"))
