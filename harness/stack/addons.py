"""Brings addons up on a control plane that runs: their objects, certificates and files, then their programs.

async with running_addons(in_order(["keda"]), binaries, control_plane, kube, time_scale=1) as up:
    ...  # up.names, up.kinds, up.ports
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import TargetError
from harness.kube.port import SECRET, Kube, Resource
from harness.stack import only_loopback
from harness.stack.addon_objects import (
    API_SERVICE,
    CRD,
    api_objects,
    base_objects,
    crd_objects,
    kinds_of,
    read_objects,
    typed,
    webhook_objects,
)
from harness.stack.description import Addon, Described, ProgramSpec
from harness.stack.find import Binaries
from harness.stack.installing import create, until_true
from harness.stack.kubernetes import ControlPlane
from harness.stack.module_files import files_of
from harness.stack.own_places import in_its_own_view
from harness.stack.patience import until_nothing_is_wrong
from harness.stack.placeholders import Values
from harness.stack.ports import HOST, HeldPorts
from harness.stack.services import Health, Launch, first_of

SECRET_WITHIN_S = 60.0
WEBHOOKS_WITHIN_S = 60.0
SURROUNDINGS = "surroundings.json"
"""In the control plane's folder, for Prometheus' file_sd: what is scraped beside pods. Written once all that is up."""
_LOOK_S = 0.2


@dataclass(slots=True)
class Standing:
    """The addons that are up. ``ports`` by ``addon/name``."""

    names: list[str] = field(default_factory=list)
    kinds: list[Resource] = field(default_factory=list)
    ports: dict[str, int] = field(default_factory=dict)
    called: dict[str, str] = field(default_factory=dict)
    """By the address that it has in a cluster, the one that it has here: both HOST:PORT."""


@contextlib.asynccontextmanager
async def running_addons(
    addons: Sequence[Described],
    binaries: Binaries,
    control_plane: ControlPlane,
    kube: Kube,
    *,
    time_scale: float,
    contents: Mapping[str, str] | None = None,
    objects: Path | None = None,
) -> AsyncIterator[Standing]:
    """Up, healthy and reachable through the API server for the length of the block. The programs are among
    ``control_plane.services``, which stops them. ``contents`` are files that the caller writes in place of an addon's
    own, by ``addon/name``. TargetError, with a program's last lines, when one does not come up."""
    standing = Standing()
    with HeldPorts() as held:
        for described in addons:
            site = Site(described, binaries, control_plane, kube, time_scale, held, standing, contents or {}, objects)
            await site.up()
            standing.names.append(described.name)
        yield standing


@dataclass(slots=True)
class Site:
    """One addon while it comes up."""

    described: Described
    binaries: Binaries
    control_plane: ControlPlane
    kube: Kube
    time_scale: float
    held: HeldPorts
    standing: Standing
    contents: Mapping[str, str]
    objects: Path | None

    @property
    def addon(self) -> Addon:
        return self.described.addon

    async def up(self) -> None:
        values = self._values()
        kinds = await self._install(values)
        self.standing.kinds += kinds
        try:
            async with asyncio.TaskGroup() as copying:
                mounts = [copying.create_task(self._mount(name, at)) for name, at in values.secrets.items()]
                await self._start(values, mounts)
        except ExceptionGroup as failures:
            raise first_of(failures) from None
        if self.addon.webhooks is not None:
            await self._until_called(values.port(self.addon.webhooks.port))
        await self._register(values)
        self.standing.called |= {there: f"{HOST}:{values.port(port)}" for there, port in self.addon.called.items()}

    async def _start(self, values: Values, mounts: Sequence[asyncio.Task[None]]) -> None:
        """The first program fills the Secrets, and may not be ready before; the others find them filled."""
        for program, component in zip(self.addon.programs, self.described.components, strict=True):
            if program is not self.addon.programs[0]:
                await asyncio.gather(*mounts)
            await self.control_plane.services.start(self._launch(program, self.binaries.path(component), values))

    def _values(self) -> Values:
        folder = self.control_plane.folder / "addons" / self.described.name
        folder.mkdir(parents=True)
        plain = {
            "kubeconfig": str(self.control_plane.kubeconfig),
            "url": self.control_plane.url,
            "authority": str(self.control_plane.authority),
            "front_proxy_authority": str(self.control_plane.layout.front_proxy_authority),
            "namespace": self.addon.namespace or "",
            "surroundings": str(self.control_plane.folder / SURROUNDINGS),
        }
        if self.addon.hosts:
            hosts = (*self.addon.hosts, "localhost", HOST)
            pair = self.control_plane.certificates.issue(f"addon-{self.described.name}", hosts=hosts)
            plain |= {"cert": str(pair.certificate), "key": str(pair.key)}
        values = Values(self.described.name, folder, plain, self.time_scale, self.held, self.standing.ports)
        values.secrets = {name: folder / place for name, place in self.addon.secrets.items()}
        for place in values.secrets.values():
            place.mkdir(parents=True, exist_ok=True)
        for name, file in self.addon.files.items():
            text = self.contents.get(f"{self.described.name}/{name}")
            values.files[name] = folder / Path(file).name
            values.files[name].write_text(
                values.fill((self.described.folder / file).read_text()) if text is None else text
            )
        for name, globs in self.addon.module_files.items():
            joined = "\n---\n".join(file.read_text() for file in files_of(self.described, globs, self.objects))
            values.files[name] = folder / f"{name}.yaml"
            values.files[name].write_text(joined)
        return values

    async def _install(self, values: Values) -> list[Resource]:
        addon, hooks = self.addon, self.addon.webhooks
        port = values.port(hooks.port) if hooks else None
        crds = read_objects(files_of(self.described, addon.crds, self.objects))
        kinds = kinds_of(crds)
        wanted = [*base_objects(addon), *crd_objects(addon, crds, port)]
        if hooks is not None and port is not None:
            configurations = read_objects(files_of(self.described, hooks.files, self.objects))
            wanted += webhook_objects(addon, configurations, port)
        for resource, obj in wanted:
            await create(self.kube, resource, obj)
        for resource, obj in wanted:
            if resource is CRD:
                await until_true(self.kube, CRD, obj["metadata"]["name"], "Established")
        for name in addon.objects:
            file = self.described.folder / name
            for resource, obj in typed(values.filled(read_objects([file])), kinds, file):
                await create(self.kube, resource, obj)
        return kinds

    def _launch(self, program: ProgramSpec, path: str, values: Values) -> Launch:
        url = values.fill(program.health)
        secure = url.startswith("https:")
        ours = secure and bool(self.addon.hosts)
        health = Health(url, self.control_plane.authority if ours else None, unchecked=secure and not ours)
        return Launch(
            program.name,
            in_its_own_view(
                (path, *(values.fill(word) for word in program.args)),
                {place: values.fill(folder) for place, folder in program.own_places.items()},
            ),
            health,
            env={name: values.fill(text) for name, text in program.env.items()},
            exits=program.exits,
            within_s=program.starts_within_s,
            loopback_only=program.everywhere and only_loopback.possible(),
        )

    async def _mount(self, name: str, folder: Path) -> None:
        """What the kubelet does for a pod: the Secret's content lies in a folder. The addon itself fills the Secret."""
        try:
            async with asyncio.timeout(SECRET_WITHIN_S):
                while not (data := (await self.kube.get(SECRET, name, self.addon.namespace)).get("data")):
                    await asyncio.sleep(_LOOK_S)
        except TimeoutError:
            raise TargetError(f"{self.described.name} put nothing into its Secret {name}") from None
        for key, encoded in data.items():
            part = folder / f".{key}.part"
            part.write_bytes(base64.b64decode(encoded))
            part.chmod(0o600)
            part.rename(folder / key)

    async def _until_called(self, port: int) -> None:
        """Some say that they are ready before their webhooks listen; objects of theirs would be refused meanwhile."""

        async def look() -> str:
            try:
                _, writer = await asyncio.open_connection(HOST, port)
            except OSError as error:
                return str(error)
            writer.close()
            return ""

        failure = f"the webhooks of {self.described.name} did not listen"
        await until_nothing_is_wrong(look, failure, WEBHOOKS_WITHIN_S)

    async def _register(self, values: Values) -> None:
        """The aggregated APIs, once somebody answers for them."""
        ports = {api.port: values.port(api.port) for api in self.addon.apis}
        authority = self.control_plane.authority if self.addon.hosts else None
        for resource, obj in api_objects(self.addon, ports, authority):
            await create(self.kube, resource, obj)
            await until_true(self.kube, API_SERVICE, obj["metadata"]["name"], "Available")
