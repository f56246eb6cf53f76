"""The protobuf bodies of kubectl ≥ 1.32, built here by hand after the field numbers of the API's own .proto files."""

from __future__ import annotations

import pytest

from fakes.kube.protobuf import MAGIC, decode
from harness.kube import port


def field(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return MAGIC + field(1, field(1, api_version) + field(2, kind)) + field(2, raw) + field(3, "") + field(4, "")


def pair(key: str, value: str) -> bytes:
    return field(1, key) + field(2, value)


def test_a_deployment() -> None:
    container = field(1, "nginx") + field(2, "nginx:1") + field(6, field(3, 8080)) + field(3, "run") + field(3, "fast")
    template = field(1, field(11, pair("app", "web"))) + field(2, field(2, container))
    spec = field(1, 300) + field(2, field(1, pair("app", "web"))) + field(3, template)
    raw = field(1, field(1, "web") + field(3, "default") + field(11, pair("app", "web"))) + field(2, spec)
    assert decode(envelope("apps/v1", "Deployment", raw)) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
        "spec": {
            "replicas": 300,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [
                        {
                            "name": "nginx",
                            "image": "nginx:1",
                            "ports": [{"containerPort": 8080}],
                            "command": ["run", "fast"],
                        }
                    ]
                },
            },
        },
    }


def test_an_access_review() -> None:
    raw = field(1, b"") + field(2, field(1, field(1, "default") + field(2, "create") + field(5, "pods")))
    decoded = decode(envelope("authorization.k8s.io/v1", "SelfSubjectAccessReview", raw))
    assert decoded["spec"] == {"resourceAttributes": {"namespace": "default", "verb": "create", "resource": "pods"}}


def test_negative_numbers_and_fields_unknown_here() -> None:
    raw = field(1, (1 << 64) - 1) + field(99, "new") + varint(98 << 3 | 1) + b"8 bytes!"
    assert decode(envelope("v1", "DeleteOptions", raw))["gracePeriodSeconds"] == -1


def test_other_kinds_are_said_to_be_json_only() -> None:
    with pytest.raises(port.ApiError) as refused:
        decode(envelope("storage.k8s.io/v1", "StorageClass", b""))
    assert refused.value.status == 415
    assert "reads StorageClass of storage.k8s.io/v1 as JSON only" in refused.value.message


@pytest.mark.parametrize(
    "data", [b"junk", MAGIC + b"\xff", MAGIC + b"\x0a\x20short", MAGIC + b"\x0f", MAGIC + b"\x08\x01"]
)
def test_malformed_bodies(data: bytes) -> None:
    with pytest.raises(port.ApiError) as refused:
        decode(data)
    assert refused.value.status in (400, 415)
