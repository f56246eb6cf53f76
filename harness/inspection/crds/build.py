"""Makes ``fields.json`` of published CRDs: ``python -m harness.inspection.crds.build FILE…``.

Kept of each kind is which fields it has, and no more. A pod template or spec within it is named, not repeated.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

from harness.inspection.crds.shapes import Shape, shape_of
from harness.kube.port import Json


def shapes_of(crd: Json) -> Iterator[tuple[str, Shape]]:
    spec = crd["spec"]
    for version in spec["versions"]:
        schema = version.get("schema", {}).get("openAPIV3Schema")
        if schema and version.get("served", True):
            yield f"{spec['group']}/{version['name']}.{spec['names']['kind']}", shape_of(schema)


def main(paths: list[str]) -> None:
    found: dict[str, Shape] = {}
    for path in paths:
        for document in yaml.safe_load_all(Path(path).read_text()):
            if document and document.get("kind") == "CustomResourceDefinition":
                found.update(shapes_of(document))
    lines = ",\n".join(f"{json.dumps(k)}:{json.dumps(v, separators=(',', ':'))}" for k, v in sorted(found.items()))
    Path(__file__).with_name("fields.json").write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
