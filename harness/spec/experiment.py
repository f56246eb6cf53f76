"""An experiment file, read as a whole: Chaos Toolkit's part, our extension block, and how both fit together."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.faults.catalogue.apply_objects import ApplyObjects
from harness.faults.fault import Fault
from harness.spec.actions import ACTIONS, ACTIONS_MODULE
from harness.spec.chaos import Activity, Control, HypothesisProbe, PythonProvider, Reference, TopLevel
from harness.spec.document import Document, KeyPath, did_you_mean, find_file, nearest, nearest_file, read_document
from harness.spec.filekind import refuse_profile
from harness.spec.manifest import load_manifest
from harness.spec.mistakes import parse
from harness.spec.probes import PROBES, PROBES_MODULE
from harness.spec.settings import HarnessSettings, read_settings
from harness.spec.variables import Variables, read_variables

CONTROL_MODULE = "harness.run.chaos.control"
_OUR_MODULES = (ACTIONS_MODULE, PROBES_MODULE, CONTROL_MODULE)


@dataclass(frozen=True, slots=True)
class PlannedAction:
    """One of our actions in the method. ``fault_id`` is its function and its number among those of that function."""

    fault_id: str
    name: str
    fault: Fault
    title: str
    at: KeyPath


@dataclass(frozen=True, slots=True)
class Experiment:
    """``raw`` is what Chaos Toolkit gets; change a copy, never it."""

    path: Path
    raw: dict[str, Any] = field(repr=False)
    title: str
    description: str
    settings: HarnessSettings
    actions: tuple[PlannedAction, ...]
    load_file: Path
    manifest_files: tuple[Path, ...]
    """Manifests that exist from the start, in the order in which they are applied."""
    action_manifests: Mapping[str, Path]
    """Manifests that actions bring, by the name they are written with."""
    has_hypothesis: bool
    """Without one nothing is known to have been steady before a fault, so the verdict cannot be a pass."""
    document: Document = field(repr=False)

    @property
    def files(self) -> tuple[Path, ...]:
        """Everything the experiment needs beside itself."""
        return (self.load_file, *self.manifest_files, *self.action_manifests.values())


def load_experiment(path: Path, environ: Mapping[str, str] | None = None) -> Experiment:
    """Reads and checks the file and its manifests; the load profile is only looked for (``load_profile`` reads it)."""
    document = read_document(path)
    refuse_profile(document)
    top = parse(TopLevel, document.data, document, ())
    settings = read_settings(document)
    variables = read_variables(document, os.environ if environ is None else environ)
    _check_variables(document, variables, settings)
    _check_control(document, top.controls)
    actions = tuple(_read_activities(document, variables, settings))
    load_file = _referred(document, (*settings.at, "load"), settings.load)
    manifests = tuple(
        _referred(document, (*settings.at, "manifests", i), written) for i, written in enumerate(settings.manifests)
    )
    action_manifests = {
        action.fault.manifest: _referred(
            document, (*action.at, "provider", "arguments", "manifest"), action.fault.manifest
        )
        for action in actions
        if isinstance(action.fault, ApplyObjects)
    }
    for manifest in (*manifests, *action_manifests.values()):
        load_manifest(manifest)
    return Experiment(
        path=path,
        raw=copy.deepcopy(document.data),
        title=top.title,
        description=top.description,
        settings=settings,
        actions=actions,
        load_file=load_file,
        manifest_files=manifests,
        action_manifests=action_manifests,
        has_hypothesis=top.hypothesis is not None,
        document=document,
    )


def _referred(document: Document, at: KeyPath, written: str) -> Path:
    found = find_file(written, document.path)
    if found is not None:
        return found
    folder = (document.path.parent / written).parent
    siblings = sorted(p.name for p in folder.iterdir() if p.is_file()) if folder.is_dir() else []
    near = nearest_file(Path(written).name, siblings)
    hint = (
        f"did you mean {str(Path(written).parent / near)!r}?"
        if near
        else f"looked in {folder} and in the working directory"
    )
    raise document.mistake(at, f'there is no file "{written}"', hint)


def _check_variables(document: Document, variables: Variables, settings: HarnessSettings) -> None:
    for key, value in document.data.items():
        if key not in ("configuration", "secrets", "extensions"):
            variables.check(value, document, (key,))
    for name, value in document.data.get("configuration", {}).items():
        if isinstance(value, dict):
            variables.check(value, document, ("configuration", name))
    ours = document.data["extensions"][settings.at[-1]]
    Variables.check_absent(ours, document, settings.at)


def _check_control(document: Document, controls: tuple[Control, ...]) -> None:
    ours = [i for i, control in enumerate(controls) if control.provider.module == CONTROL_MODULE]
    example = f"controls:\n    - {{name: gpu-harness, provider: {{type: python, module: {CONTROL_MODULE}}}}}"
    if not ours:
        for index, control in enumerate(controls):
            if nearest(control.provider.module, [CONTROL_MODULE]):
                at: KeyPath = ("controls", index, "provider", "module")
                raise document.mistake(
                    at, f"there is no control {control.provider.module}", f"ours is {CONTROL_MODULE}"
                )
        raise document.mistake(
            ("controls",), "our control is not listed, so actions could not see the settings", example
        )
    control = controls[ours[0]]
    if len(ours) > 1:
        raise document.mistake(("controls", ours[1]), "our control is listed twice", "keep one of them")
    if control.scope is not None or not control.automatic:
        key = "scope" if control.scope is not None else "automatic"
        raise document.mistake(("controls", ours[0], key), "our control must see the whole run", f"leave out {key!r}")


def _read_activities(document: Document, variables: Variables, settings: HarnessSettings) -> Iterator[PlannedAction]:
    """Checks all activities and yields our actions of the method, numbered by function."""
    numbers: dict[str, int] = {}
    last_start_s, waited_for = 0.0, _WaitedFor()
    for at, data in _activities(document):
        activity = _read_activity(document, at, data)
        _check_pauses(document, at, activity, settings)
        if isinstance(activity, Reference) or not isinstance(activity.provider, PythonProvider):
            continue
        fault = _our_fault(document, variables, at, activity, activity.provider)
        if fault is None:
            continue
        func = activity.provider.func
        if at[0] != "method":
            hint = "rollbacks may heal; faults and arrivals belong into the method"
            raise document.mistake((*at, "provider", "func"), f"{func} is no rollback", hint)
        numbers[func] = numbers.get(func, 0) + 1
        if not activity.background:
            if fault.starts_s < last_start_s:
                raise document.mistake(
                    (*at, "provider", "arguments", "after_s"),
                    f"begins at {fault.starts_s:g} s, before the activity above it ({last_start_s:g} s)",
                    "write the method in the order of time: Chaos Toolkit runs it one after the other",
                )
            last_start_s = fault.starts_s
        waited_for.check(document, at, fault)
        if not activity.background:
            waited_for.note(activity.name, fault)
        yield PlannedAction(f"{func}-{numbers[func]}", func, fault, activity.name, at)


@dataclass(slots=True)
class _WaitedFor:
    """The action of the method that is over last, of those for which the next one waits. What begins later than its
    ``after_s`` says is another experiment than the one that was written, so that is found out before anything runs."""

    name: str = ""
    ends_s: float = 0.0

    def note(self, name: str, fault: Fault) -> None:
        if fault.ends_s > self.ends_s:
            self.name, self.ends_s = name, fault.ends_s

    def check(self, document: Document, at: KeyPath, fault: Fault) -> None:
        if fault.starts_s < self.ends_s:
            raise document.mistake(
                (*at, "provider", "arguments", "after_s"),
                f"should begin at {fault.starts_s:g} s, but the method waits for {self.name!r}, which is over at "
                f"{self.ends_s:g} s",
                f"give {self.name!r} `background: true`, so that nothing waits for it, or begin later",
            )


def _activities(document: Document) -> Iterator[tuple[KeyPath, Any]]:
    data = document.data
    lists: tuple[tuple[KeyPath, list[Any]], ...] = (
        (("steady-state-hypothesis", "probes"), (data.get("steady-state-hypothesis") or {}).get("probes", [])),
        (("method",), data["method"]),
        (("rollbacks",), data.get("rollbacks", [])),
    )
    for at, activities in lists:
        for index, activity in enumerate(activities):
            yield (*at, index), activity
            tolerance = activity.get("tolerance") if isinstance(activity, dict) else None
            if at[0] == "steady-state-hypothesis" and isinstance(tolerance, dict) and tolerance.get("type") == "probe":
                yield (*at, index, "tolerance"), tolerance
    for name, value in data.get("configuration", {}).items():
        if isinstance(value, dict) and value.get("type") == "probe":
            yield ("configuration", name), value


def _read_activity(document: Document, at: KeyPath, data: Any) -> Activity | Reference:
    if not isinstance(data, dict):
        return parse(Activity, data, document, at)
    if "ref" in data:
        _check_reference(document, (*at, "ref"), data["ref"])
        return parse(Reference, data, document, at)
    if at[0] == "steady-state-hypothesis" and at[-1] != "tolerance":
        return parse(HypothesisProbe, data, document, at)
    return parse(Activity, data, document, at)


def _check_reference(document: Document, at: KeyPath, name: object) -> None:
    named = {
        a["name"]: a
        for where, a in _activities(document)
        if where[0] in ("method", "steady-state-hypothesis") and isinstance(a, dict) and isinstance(a.get("name"), str)
    }
    if not isinstance(name, str) or name not in named:
        raise document.mistake(at, f"no activity is named {name!r}", did_you_mean(str(name), named))
    provider = named[name].get("provider")
    if isinstance(provider, dict) and provider.get("module") == ACTIONS_MODULE:
        raise document.mistake(at, "our actions cannot be repeated by ref", "write it again, with its own after_s")


def _check_pauses(document: Document, at: KeyPath, activity: Activity | Reference, settings: HarnessSettings) -> None:
    if activity.pauses is not None and settings.time_scale != 1:
        raise document.mistake(
            (*at, "pauses"),
            f"pauses are clock seconds, but time_scale is {settings.time_scale:g}",
            "use the action's after_s (scenario seconds), or set time_scale: 1",
        )


def _our_fault(
    document: Document, variables: Variables, at: KeyPath, activity: Activity, provider: PythonProvider
) -> Fault | None:
    """One of our faults with checked arguments; None for anything else (a probe of ours is checked, too)."""
    module, at = provider.module, (*at, "provider")
    if module not in (ACTIONS_MODULE, PROBES_MODULE):
        if module.startswith("harness.") or nearest(module, _OUR_MODULES):
            raise document.mistake(
                (*at, "module"), f"there is no module {module}", did_you_mean(module, _OUR_MODULES[:2])
            )
        return None
    wanted, known = ("action", ACTIONS) if module == ACTIONS_MODULE else ("probe", PROBES)
    if provider.func not in known:
        raise document.mistake(
            (*at, "func"), f"{module} has no {wanted} {provider.func!r}", did_you_mean(provider.func, known)
        )
    if activity.type != wanted:
        raise document.mistake((*at[:-1], "type"), f"{provider.func} belongs under type: {wanted}")
    arguments = variables.fill(provider.arguments, document, (*at, "arguments"))
    model = known[provider.func]
    parsed = parse(model, arguments, document, (*at, "arguments"))
    return parsed if isinstance(parsed, Fault) else None
