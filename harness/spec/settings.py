"""Our extension block of an experiment: how fast, which workload, which load, which world, which checks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, Strict, StringConstraints

from harness.spec.checks import CHECK_SPECS, CheckSpec, SloSpec
from harness.spec.document import Document, KeyPath, did_you_mean
from harness.spec.mistakes import parse, show
from harness.spec.model import LabelSelector, ObjectName, SecondsFromZero, SpecModel, Text, mistake
from harness.spec.safety import GuardsSpec
from harness.spec.world import WorldSpec
from harness.stack.description import addons

EXTENSION = "gpu-harness"


def _service_url(text: str) -> str:
    if text != "auto" and not re.fullmatch(r"https?://[^\s/]+(/\S*)?", text):
        raise mistake(f'"{text}" is not a service URL', hint="write auto, or http://host:port")
    if "@" in text.partition("://")[2].partition("/")[0]:
        raise mistake(
            "a password in a URL is a password in a report", hint="name its environment variable: api_key_env: NAME"
        )
    return text


def _header_name(text: str) -> str:
    if re.search("authorization|key|token|secret|cookie", text.lower()):
        raise mistake("a key in a file is a key in a report", hint="name its environment variable: api_key_env: NAME")
    if text.lower() in _OURS:
        raise mistake(f"the header {text} is the load's own to set")
    return text


_OURS = frozenset(
    {"host", "content-length", "content-type", "accept", "x-request-id", "connection", "transfer-encoding"}
)
HeaderName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"), AfterValidator(_header_name)]
HeaderValue = Annotated[str, StringConstraints(pattern=r"^[\x20-\x7e]*$")]
EnvName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class WorkloadSpec(SpecModel):
    """The model server under test. ``url: auto`` takes the service URL from the target.

    ``api_key_env`` names the environment variable that holds the API key; ``ca_file`` is relative to the working
    directory.
    """

    namespace: ObjectName
    selector: LabelSelector
    service: ObjectName = "llm"
    url: Annotated[str, AfterValidator(_service_url)] = "auto"
    model: Text
    api: Literal["chat", "completions"] = "chat"
    headers: dict[HeaderName, HeaderValue] = Field(default_factory=dict)
    api_key_env: EnvName | None = None
    ca_file: Text | None = None


class PhasesSpec(SpecModel):
    """Scenario seconds: how long the start is not judged as steady, and how long the method's end is watched."""

    warm_up_s: SecondsFromZero = 0.0
    recovery_s: SecondsFromZero = 0.0


class _Block(SpecModel):
    """The extension as written; the entries of ``checks`` are read one by one, each by its own model."""

    name: str
    time_scale: Annotated[float, Strict(), Field(gt=0, le=1000)] = 1.0
    workload: WorkloadSpec
    load: Text
    manifests: tuple[Text, ...] = ()
    world: WorldSpec | None = None
    stack: tuple[ObjectName, ...] = ()
    phases: PhasesSpec = PhasesSpec()
    guards: GuardsSpec = GuardsSpec()
    checks: tuple[Any, ...] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class HarnessSettings:
    """What the extension block says, read. ``at`` is where it stands in the document."""

    time_scale: float
    workload: WorkloadSpec
    load: str
    manifests: tuple[str, ...]
    world: WorldSpec | None
    phases: PhasesSpec
    guards: GuardsSpec
    checks: tuple[CheckSpec, ...]
    at: KeyPath
    stack: tuple[str, ...] = ()
    """Real components that the run is about, by the names of ``controlplane/``."""

    def clock_s(self, scenario_s: float) -> float:
        return scenario_s / self.time_scale


def read_settings(document: Document) -> HarnessSettings:
    at = _find_extension(document)
    data = _get(document.data, at)
    block = parse(_Block, data, document, at)
    checks = tuple(_read_check(entry, document, (*at, "checks", i)) for i, entry in enumerate(data["checks"]))
    _check_repeats(checks, document, at)
    for index, name in enumerate(block.stack):
        if name not in addons():
            what = f"there is no component {name!r}"
            raise document.mistake((*at, "stack", index), what, did_you_mean(name, addons()))
    return HarnessSettings(
        block.time_scale,
        block.workload,
        block.load,
        block.manifests,
        block.world,
        block.phases,
        block.guards,
        checks,
        at,
        block.stack,
    )


def _find_extension(document: Document) -> KeyPath:
    extensions = document.data.get("extensions", [])
    example = f"add `extensions: [{{name: {EXTENSION}, time_scale: ..., workload: ..., load: ..., checks: [...]}}]`"
    if not isinstance(extensions, list):
        raise document.mistake(("extensions",), f"is {show(extensions)}, but must be a list", example)
    names: list[str] = []
    for index, extension in enumerate(extensions):
        name = extension.get("name") if isinstance(extension, dict) else None
        if not isinstance(name, str) or not name.strip():
            raise document.mistake(("extensions", index), "has no name", f"ours is `name: {EXTENSION}`")
        names.append(name)
    if names.count(EXTENSION) > 1:
        last = len(names) - 1 - names[::-1].index(EXTENSION)
        raise document.mistake(("extensions", last), f"is the second extension named {EXTENSION}", "keep one")
    if EXTENSION in names:
        return ("extensions", names.index(EXTENSION))
    if names:
        raise document.mistake(
            ("extensions", 0, "name"), f"no extension is named {EXTENSION!r}, only {', '.join(names)}", example
        )
    raise document.mistake(("extensions",), f"there is no extension named {EXTENSION!r}", example)


def _read_check(entry: object, document: Document, at: KeyPath) -> CheckSpec:
    if isinstance(entry, str) and entry in CHECK_SPECS:
        raise document.mistake(at, f'"{entry}" is a text, but a check is a mapping', f"write `- {entry}: {{}}`")
    if not isinstance(entry, dict) or len(entry) != 1:
        seen = f"a mapping of {len(entry)} keys" if isinstance(entry, dict) else show(entry)
        example = "write one check per '-', as in `- graceful_drain: {streams_lost_max: 0}`"
        hint = f"{example}; {did_you_mean('', CHECK_SPECS)}"
        raise document.mistake(at, f"is {seen}, but must be one check", hint)
    ((name, arguments),) = entry.items()
    if name not in CHECK_SPECS:
        raise document.mistake((*at, name), f"there is no check {name!r}", did_you_mean(name, CHECK_SPECS))
    return parse(CHECK_SPECS[name], {} if arguments is None else arguments, document, (*at, name))


def _check_repeats(checks: tuple[CheckSpec, ...], document: Document, at: KeyPath) -> None:
    """Several ``slo`` are fine, one for each phase and kind of request; any other repetition would print two findings
    of one name."""
    seen: list[tuple[str, str]] = []
    for index, check in enumerate(checks):
        key = (check.name, f"{check.phase} {check.slice}".rstrip() if isinstance(check, SloSpec) else "")
        if key in seen:
            what = f"slo of phase {key[1]!r}" if key[1] else check.name
            where = (*at, "checks", index, check.name)
            raise document.mistake(where, f"{what} is asked for twice", "keep one of them")
        seen.append(key)


def _get(data: Any, at: KeyPath) -> Any:
    for part in at:
        data = data[part]
    return data
