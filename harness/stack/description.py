"""One addon of a control plane, as ``controlplane/<name>/component.yaml`` describes it, and all there are.

An addon is what people install on a cluster beside Kubernetes itself: programs, kinds, webhooks, certificates. The
file's keys are the fields of ``Addon``; texts may hold placeholders (``harness.stack.placeholders``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, Strict, model_validator

from harness.errors import BadInput, Where
from harness.kube.port import Resource
from harness.spec.document import did_you_mean, read_document
from harness.spec.mistakes import parse
from harness.spec.model import Count, CountFromZero, Flag, ObjectName, SpecModel, Text, mistake
from harness.stack.component import MODULES, Component, pinned_version
from harness.stack.description_checks import check_description

FILE = "component.yaml"
Emulated = Literal[
    "karpenter", "kwok-nodes", "custom.metrics.k8s.io", "external.metrics.k8s.io", "metrics.k8s.io", "endpoint-picker",
]  # fmt: skip
"""What surrounds the control plane and stands aside for the real thing: our Karpenter rules, our kubelets of nodes that
are written for KWOK, our metrics APIs, our gateway's choice of a replica."""


class ProgramSpec(SpecModel):
    """One program. ``health`` is a URL that answers 200 once it serves. ``exits`` is how often it may end by itself,
    and is started again, because it is written so. ``everywhere``: it can only listen on all interfaces, and gets
    127.0.0.1 in their place where root allows."""

    name: ObjectName
    package: Text
    args: tuple[Text, ...] = ()
    env: dict[Text, str] = Field(default_factory=dict)
    health: Text
    exits: CountFromZero = 0
    everywhere: Flag = False
    own_places: dict[Text, Text] = Field(default_factory=dict)
    """Folders that it insists on, by their fixed place, and what of the run it is to find there: it runs in a mount
    namespace of its own (which needs root, or user namespaces)."""
    starts_within_s: Count = 60


class ServedApi(SpecModel):
    """An aggregated API, ``version.group``, answered by a Service of ours on a port of this machine."""

    group: Text
    version: Text
    service: ObjectName
    port: Text


class WebhooksSpec(SpecModel):
    """Webhook configurations of the module, as its kustomize files would patch them: ``prefix`` goes before their
    names, and all are called at ``service``, whose port is ours. Where the addon makes certificates, it writes their
    authority into them itself."""

    files: tuple[Text, ...] = Field(min_length=1)
    prefix: str = ""
    service: ObjectName
    port: Text
    only: tuple[Text, ...] = ()
    """Names of webhooks to keep; all, by default."""
    labelled: dict[Text, Text] = Field(default_factory=dict)
    """By a webhook's name, the label without which an object is not shown to it."""
    not_in: tuple[ObjectName, ...] = ("kube-system",)
    """Namespaces whose objects they leave alone, beside the addon's own."""
    converts: tuple[Text, ...] = ()
    """Names of CRDs whose versions are converted by the same server, at /convert."""


class KindSpec(SpecModel):
    """A kind that the addon brings and that manifests may use."""

    group: Text
    version: Text
    kind: Text
    plural: Text
    namespaced: Flag = True


class Addon(SpecModel):
    """``source`` is the Go module; ``crds`` are globs in it. ``services`` are host names in the cluster that lead to
    this machine; ``secrets`` are Secrets that the addon fills itself, and the folder in which it wants to find them."""

    about: Text
    source: Text
    toolchain: str = ""
    page: Text
    install: Text
    """How people bring it onto a cluster of their own, in one line."""
    finds: Text
    """A kind that is served where it is installed: plural.group, or an aggregated API: version.group."""
    needs: tuple[ObjectName, ...] = ()
    emulated: tuple[Emulated, ...] = ()
    embedded: Flag = False
    """The embedded cluster plays it under the same kinds, so that the same experiment runs there, too."""
    programs: tuple[ProgramSpec, ...] = Field(min_length=1)
    namespace: ObjectName | None = None
    crds: tuple[Text, ...] = ()
    kinds: tuple[KindSpec, ...] = ()
    """Written down here too, so that an experiment can be read where nothing is built."""
    objects: tuple[Text, ...] = ()
    services: tuple[ObjectName, ...] = ()
    secrets: dict[ObjectName, Text] = Field(default_factory=dict)
    called: dict[Text, Text] = Field(default_factory=dict)
    """HOST:PORT by which an experiment's objects call it in a cluster, and the port of ours that is meant."""
    hosts: tuple[Text, ...] = ()
    """Names that its certificate is for, signed by the cluster's authority, where it is to have one of ours."""
    webhooks: WebhooksSpec | None = None
    apis: tuple[ServedApi, ...] = ()
    files: dict[Text, Text] = Field(default_factory=dict)
    """Files of the folder, by the name that ``${file:name}`` calls them; their placeholders are filled."""
    module_files: dict[Text, tuple[Text, ...]] = Field(default_factory=dict)
    """Files of the module that are joined into one, by the name that ``${file:name}`` calls it."""
    cheap: Annotated[bool, Strict()] = False
    """Whether `make stack` builds it."""

    @model_validator(mode="after")
    def _programs_differ(self) -> Addon:
        names = [program.name for program in self.programs]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise mistake(f"two programs are named {name!r}", key=("programs", index, "name"))
        return self


class Described:
    """An addon with its folder. ``name`` is the folder's."""

    def __init__(self, folder: Path) -> None:
        document = read_document(folder / FILE)
        self.folder = folder
        self.name = folder.name
        self.addon: Addon = parse(Addon, document.data, document, ())
        check_description(self.addon, folder, document)
        try:
            self.version = pinned_version(folder, self.addon.source)
        except (OSError, UnicodeDecodeError) as error:
            said = (error.strerror or "") if isinstance(error, OSError) else "is not UTF-8 text"
            where = Where(str(folder / "go.mod"))
            raise BadInput(f"cannot be read: {said}", where=where, hint="docs/adding-a-component.md") from None
        if not self.version:
            raise document.mistake(
                ("source",), f"go.mod does not require {self.addon.source}", "add it, or mend source"
            )
        self.components: tuple[Component, ...] = tuple(self._components())

    def _components(self) -> Iterator[Component]:
        for program in self.addon.programs:
            yield Component(
                name=program.name,
                module=self.name,
                package=program.package,
                releases=(self.version,),
                version_args=(),
                source=self.addon.source,
                toolchain=self.addon.toolchain,
                modules=self.folder.parent,
            )

    @property
    def from_module(self) -> tuple[str, ...]:
        """Globs of the files that a run takes from the Go module."""
        addon = self.addon
        hooks = addon.webhooks.files if addon.webhooks else ()
        return (*addon.crds, *hooks, *(glob for globs in addon.module_files.values() for glob in globs))


@cache
def addons(modules: Path = MODULES) -> dict[str, Described]:
    """All there are, by name. BadInput names the file, line and key of a description that cannot be read."""
    return {path.parent.name: Described(path.parent) for path in sorted(modules.glob(f"*/{FILE}"))}


def kinds(names: Iterable[str], known: dict[str, Described] | None = None) -> list[Resource]:
    """What kinds these addons and all that they need bring."""
    return [
        Resource(kind.group, kind.version, kind.plural, kind.kind, kind.namespaced)
        for described in in_order(names, known)
        for kind in described.addon.kinds
    ]


def set_aside(names: Iterable[str], known: dict[str, Described] | None = None) -> frozenset[str]:
    """Which parts of ours stand aside for these addons and all that they need."""
    return frozenset(part for described in in_order(names, known) for part in described.addon.emulated)


def not_embedded(names: Iterable[str], known: dict[str, Described] | None = None) -> list[str]:
    """Those of these addons that the embedded cluster does not play, or not all that they need."""
    return [name for name in names if not all(d.addon.embedded for d in in_order([name], known))]


def check_names(names: Iterable[str], where: Where, known: dict[str, Described] | None = None) -> None:
    """BadInput for a name that no addon has."""
    there = addons() if known is None else known
    for name in names:
        if name not in there:
            raise BadInput(f"there is no component {name!r}", where=where, hint=did_you_mean(name, there))


def in_order(names: Iterable[str], known: dict[str, Described] | None = None) -> tuple[Described, ...]:
    """The addons of these names and all that they need, each after what it needs."""
    there = addons() if known is None else known
    found: dict[str, Described] = {}

    def add(name: str, asked_by: tuple[str, ...]) -> None:
        if name in asked_by:
            raise BadInput(f"components need each other in a circle: {' -> '.join((*asked_by, name))}")
        for needed in there[name].addon.needs:
            check_names((needed,), Where(str(there[name].folder / FILE), key="needs"), there)
            add(needed, (*asked_by, name))
        found.setdefault(name, there[name])

    for name in names:
        add(name, ())
    return tuple(found.values())
