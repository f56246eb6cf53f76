"""What a container needs of ConfigMaps and Secrets before it can be made. The refusals are a kubelet's own."""

from __future__ import annotations

from collections.abc import Iterator

from fakes.nodes.client import NodeClient
from harness.kube.port import CONFIG_MAP, SECRET, Json, NotFound, Resource


async def missing_config(client: NodeClient, namespace: str, container: Json) -> str | None:
    """What the environment of the container refers to and is not there; None when nothing is missing."""
    for resource, ref, key in _references(container):
        if ref.get("optional"):
            continue
        kind = "configmap" if resource is CONFIG_MAP else "secret"
        try:
            found = await client.get(resource, ref["name"], namespace)
        except NotFound:
            return f'{kind} "{ref["name"]}" not found'
        if key is not None and key not in {**(found.get("data") or {}), **(found.get("binaryData") or {})}:
            return f"couldn't find key {key} in {resource.kind} {namespace}/{ref['name']}"
    return None


async def missing_volume(client: NodeClient, namespace: str, pod: Json) -> str | None:
    """The message of the FailedMount event; None when every volume can be set up."""
    for volume in pod["spec"].get("volumes") or ():
        for resource, ref, name in (
            (CONFIG_MAP, volume.get("configMap"), "name"),
            (SECRET, volume.get("secret"), "secretName"),
        ):
            if not ref or ref.get("optional") or ref.get(name) == "kube-root-ca.crt":
                continue
            try:
                await client.get(resource, ref[name], namespace)
            except NotFound:
                kind = "configmap" if resource is CONFIG_MAP else "secret"
                return f'MountVolume.SetUp failed for volume "{volume["name"]}" : {kind} "{ref[name]}" not found'
    return None


def _references(container: Json) -> Iterator[tuple[Resource, Json, str | None]]:
    for source in container.get("envFrom") or ():
        if ref := source.get("configMapRef"):
            yield CONFIG_MAP, ref, None
        if ref := source.get("secretRef"):
            yield SECRET, ref, None
    for variable in container.get("env") or ():
        chosen = variable.get("valueFrom") or {}
        if ref := chosen.get("configMapKeyRef"):
            yield CONFIG_MAP, ref, ref["key"]
        if ref := chosen.get("secretKeyRef"):
            yield SECRET, ref, ref["key"]
