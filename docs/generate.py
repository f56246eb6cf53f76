"""Writes docs/{checks,faults,history,inspect}.md from the code: ``python docs/generate.py``. A test compares them."""

from __future__ import annotations

import inspect
import json
import os
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, get_args, get_origin

import yaml
from pydantic_core import PydanticUndefined

from harness.checks.judge import CHECKS, VALIDITY
from harness.faults.fault import Fault, fidelity_on, why_unsupported
from harness.faults.fidelity import CONTROL_PLANE, TARGETS, Fidelity
from harness.faults.registry import FAULTS
from harness.spec.actions import ACTIONS
from harness.spec.checks import CHECK_SPECS, LATENCIES, QUANTILES, SloSpec
from harness.spec.model import SpecModel

FOLDER = Path(__file__).resolve().parent
EXAMPLES_FILE = "failing-examples.json"
MATRIX_FILE = "fault-matrix.json"
EXPERIMENTS = FOLDER.parent / "experiments"
EXPECTED = FOLDER.parent / "tests" / "harness" / "run" / "virtual" / "expected.yaml"
_WRITTEN = "<!-- written by docs/generate.py; change the docstrings it reads, then run it again -->"
_BOUNDS = (("gt", "more than {}"), ("ge", "at least {}"), ("le", "at most {}"))
_TEXTS = {
    "selector": "a label selector",
    "manifest": "a file, from the experiment's folder",
    "brought": "whether they come during the run only, and are picked then",
}
_UNITS = {
    "_s": "scenario seconds",
    "_s_max": "scenario seconds",
    "_s_min": "scenario seconds",
    "_ms": "milliseconds",
    "_ratio_min": "a share",
    "_ratio_max": "a share",
}


def checks_page() -> str:
    parts = [
        "# Checks",
        _WRITTEN,
        "A check is a pure function of a recorded history: it answers pass, fail or unknown, with the evidence. An "
        "experiment asks for checks under `checks:` of its extension block; the validity checks always run. A check "
        "that raises is unknown, and so is one whose promise was never put to the test. How findings become a verdict "
        "stands in `harness/verdict.py`; what the figures mean, in `docs/metrics.md`.",
        "## Asked for by an experiment",
    ]
    for name, check in CHECKS.items():
        needs: Sequence[str] = getattr(inspect.getmodule(check), "NEEDS", ())
        proves = getattr(inspect.getmodule(check), "PROVES", "")
        but = f"; but {proves} is its own proof" if proves else ""
        unless = getattr(inspect.getmodule(check), "UNLESS", "")
        own = f"A fail is its own proof, unless {unless}." if unless else "A fail is its own proof, always."
        leans = f"A fail counts only where {_ticked(needs)} passed{but}." if needs else own
        parts += [f"### {name}", *_words_of(check), *_check_keys(CHECK_SPECS[name])]
        parts.append(leans)
        parts += _failing(name)
    parts.append("## Always judged: is the run valid?")
    parts.append("Unless every one of these passes, no check of the run can pass.")
    for name, validity in VALIDITY.items():
        parts += [f"### {name}", *_words_of(validity)]
    return _page(parts)


def _failing(check: str) -> list[str]:
    """A fail of it, as a run of the verdict matrix ended (``tests/matrix/failing_examples.py``)."""
    file = FOLDER / EXAMPLES_FILE
    example = json.loads(file.read_text(encoding="utf-8")).get(check) if file.exists() else None
    if example is None:
        return []
    planted = f"`{example['experiment']}`, `{example['row']}`: {example['breaks']}"
    return [f"A fail of it ({planted}):", f"> {example['sentence']}", f"> {example['story']}"]


def faults_page() -> str:
    parts = [
        "# Faults",
        _WRITTEN,
        "A fault is an action of the experiment's `method`, with `module: harness.run.chaos.actions` and its name as "
        "`func`. Each goes through the same steps on every target: pick (seeded, before the run), inject (its undo is "
        "on disk first), observe (proof by other means than the injection), heal (idempotent). What nobody saw take "
        "effect makes the run unknown.",
        "## How true a fault is, by target",
        "native: the real thing happens. emulated: something of ours plays it. unsupported: refused before the run.",
        _table(("fault", *TARGETS), [(f"`{name}`", *_fidelity(fault)) for name, fault in FAULTS.items()]),
    ]
    parts += _matrix()
    parts += _twins()
    for name, fault in FAULTS.items():
        phase = "It opens the phase `fault`." if fault.disruptive else "It opens no phase `fault`: it is no disruption."
        undone_by = _ticked(fault.undone_by)
        parts += [f"## {name}", _first_line(inspect.getmodule(fault)), _plain(fault)]
        parts += [f"{phase} Its undo in the journal is {undone_by}.", _arguments(ACTIONS[name])]
        if fault.variants:
            rows = [(v.name, v.what, _written(v.arguments)) for v in fault.variants]
            parts.append(_table(("variant", "in the field", "arguments"), rows))
    parts.append("## Actions that are no fault")
    parts += [f"`{name}`: {_plain(model)}" for name, model in ACTIONS.items() if name not in FAULTS]
    return _page(parts)


def _matrix() -> list[str]:
    """From docs/fault-matrix.json, which ``make fault-matrix`` writes. A variant that it does not have is not known."""
    played = {(row["fault"], row["variant"]): row for row in json.loads((FOLDER / MATRIX_FILE).read_text())}
    rows = [
        (f"`{name}`", variant.name, *_played(played.get((name, variant.name))))
        for name, fault in FAULTS.items()
        for variant in fault.variants
    ]
    return [
        "## Proof, variant by variant",
        "Each variant was played in virtual time on a small world by `make fault-matrix`. *Observed*: its effect was "
        "seen. *Healed*: it was seen to go once undone; `-`: nothing is left that could be seen to go. *No-op found*: "
        "with the fault's switches disconnected, so that all is accepted and nothing is done, it was reported as not "
        "observed.",
        _table(("fault", "variant", "observed", "healed", "no-op found"), rows),
    ]


def _twins() -> list[str]:
    """From the experiments and what is declared of them; the test of the shipped verdicts plays every one."""
    declared: dict[str, dict[str, Any]] = yaml.safe_load(EXPECTED.read_text())
    rows: dict[str, list[str]] = {name: [] for name in FAULTS}
    for main, expected in declared.items():
        for twin, check in expected["twins"].items():
            for name in _actions_of(EXPERIMENTS / "negative" / f"{twin}.yaml"):
                rows[name].append(f"`{twin}` ({check})")
        for name in _actions_of(EXPERIMENTS / f"{main}.yaml"):
            rows[name].insert(0, f"**{main}**")
    table = [
        (f"`{name}`", ", ".join(dict.fromkeys(said)) or "only by its rehearsal above") for name, said in rows.items()
    ]
    return [
        "## Experiments and their twins, by fault",
        "In bold the experiments that use the fault, in ticks their twins in `experiments/negative/`, with the check "
        "that must find the planted bug under it. `SHIPPED=all pytest tests/harness/run/virtual` plays all.",
        _table(("fault", "experiments and twins"), table),
    ]


def _actions_of(experiment: Path) -> list[str]:
    method = yaml.safe_load(experiment.read_text())["method"]
    names = (str(step["provider"].get("func", "")) for step in method if step["type"] == "action")
    return [name for name in dict.fromkeys(names) if name in FAULTS]


def _played(row: Mapping[str, Any] | None) -> tuple[str, str, str]:
    if row is None:
        return "not played", "not played", "not played"
    words = {True: "yes", False: "**no**", None: "-"}
    return words[row["observed"]], words[row["healed"]], words[row["no_op"]]


def _fidelity(fault: type[Fault]) -> list[str]:
    return [_fidelity_in(fault, target) for target in TARGETS]


def _fidelity_in(fault: type[Fault], target: str) -> str:
    fidelity = fidelity_on(fault, target)
    if fidelity is Fidelity.UNSUPPORTED:
        return f"unsupported: {why_unsupported(fault, target)}"
    if fault.real_with and target == CONTROL_PLANE:
        return f"{fidelity.value}; native with `stack: [{fault.real_with}]`"
    return fidelity.value


def _written(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"`{key}: {json.dumps(value)}`" for key, value in arguments.items())


def history_page() -> str:
    sys.path.insert(0, str(FOLDER))  # also when a test loads this file from somewhere else
    import history_page

    return _page(["# The files of a history", _WRITTEN, *history_page.parts()])


def inspect_page() -> str:
    sys.path.insert(0, str(FOLDER))
    import inspect_page

    return _page(inspect_page.parts(_WRITTEN, _table))


PAGES = {
    "checks.md": checks_page,
    "faults.md": faults_page,
    "history.md": history_page,
    "inspect.md": inspect_page,
}


def _check_keys(spec: type[SpecModel]) -> list[str]:
    if spec is SloSpec:
        rows = [
            ("`<latency>_<quantile>`", "milliseconds, more than 0", "no limit of its own"),
            *(row for row in _key_rows(spec) if row[0] != "`limits`"),
        ]
        said = f"Latencies: {_ticked(LATENCIES)}. Quantiles: {_ticked(QUANTILES)}. At least one limit must be set."
        return [_table(_KEY_HEAD, rows), said]
    return [_arguments(spec)]


_KEY_HEAD = ("key", "what", "if left out")


def _arguments(model: type[SpecModel]) -> str:
    rows = _key_rows(model)
    return _table(_KEY_HEAD, rows) if rows else "It takes no keys."


def _key_rows(model: type[SpecModel], prefix: str = "") -> list[tuple[str, str, str]]:
    rows: list[tuple[str, str, str]] = []
    for name, field in model.model_fields.items():
        inner = field.annotation
        if inspect.isclass(inner) and issubclass(inner, SpecModel):
            rows += _key_rows(inner, f"{prefix}{name}.")
            continue
        default = "must be given" if field.is_required() else _default(field.get_default(call_default_factory=True))
        rows.append((f"`{prefix}{name}`", _kind(name, *_bare(inner, field.metadata)), default))
    return rows


def _bare(annotation: Any, metadata: Iterable[Any]) -> tuple[Any, Iterable[Any]]:
    """Type and constraints; of a key that may be left out, those of what it holds when it is there."""
    inner = [arg for arg in get_args(annotation) if arg is not type(None)]
    if type(None) not in get_args(annotation) or get_origin(inner[0]) is not Annotated:
        return annotation, metadata
    plain, *constraints = get_args(inner[0])
    return plain, [fact for constraint in constraints for fact in getattr(constraint, "metadata", (constraint,))]


def _kind(name: str, annotation: Any, metadata: Iterable[Any]) -> str:
    """Unit by the key's ending, choices by the type, bounds by its constraints."""
    unit = next((unit for ending, unit in _UNITS.items() if name.endswith(ending)), "")
    choices = [f"`{choice}`" for choice in getattr(annotation, "__args__", ()) if isinstance(choice, str)]
    plain = {int: "a whole number", float: "a number", str: "text"}.get(annotation, "")
    words = [unit or ", ".join(choices) or _TEXTS.get(name, plain)]
    for fact in metadata:
        words += [
            text.format(f"{_figure(bound)}") for key, text in _BOUNDS if (bound := getattr(fact, key, None)) is not None
        ]
    return ", ".join(word for word in words if word)


def _default(value: object) -> str:
    if value is None or value is PydanticUndefined:
        return "no limit of its own"
    return f"`{_figure(value)}`" if isinstance(value, float) else f"`{value}`"


def _words_of(check: Any) -> list[str]:
    """The module's line is the promise; the function's own words say when it is unknown."""
    return [f"**{_first_line(inspect.getmodule(check))}**", *([_plain(check)] if inspect.getdoc(check) else [])]


def _first_line(module: ModuleType | None) -> str:
    return _plain(module).split("\n\n")[0]


def _plain(thing: object) -> str:
    """A docstring as Markdown, a line per paragraph."""
    text = (inspect.getdoc(thing) or "").replace("``", "`")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _wrapped(part: str) -> str:
    """Prose at the width of the other pages; headings and tables as they are."""
    if part.startswith(("#", "|", "<!--", "```")):
        return part
    paragraphs = part.split("\n\n")
    again = "> " if part.startswith("> ") else ""
    return "\n\n".join(
        textwrap.fill(p, 120, break_long_words=False, break_on_hyphens=False, subsequent_indent=again)
        for p in paragraphs
    )


def _ticked(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _page(parts: Iterable[str]) -> str:
    return "\n\n".join(_wrapped(part) for part in parts if part) + "\n"


def main() -> None:
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")
        _say(f"wrote docs/{name}")


def _say(line: str) -> None:
    """Whoever reads it may have seen enough (``| head``): the pages are written all the same."""
    try:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _figure(value: float) -> str:
    """1000000 rather than 1e+06."""
    return str(int(value)) if value == int(value) else f"{value:g}"


if __name__ == "__main__":
    main()
