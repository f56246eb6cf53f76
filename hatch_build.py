"""Says in the distribution what its importable packages are, the extension's first.

`chaos discover gpu-harness` looks the package up by the distribution's ``top_level.txt``, takes the first name in it,
and asks that package for its ``discover``. Hatch writes no such file, and an editable install leaves nothing to guess
from.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TOP_LEVEL = "harness\nfakes\n"


class TopLevelHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self._folder = tempfile.TemporaryDirectory()
        file = Path(self._folder.name) / "top_level.txt"
        file.write_text(TOP_LEVEL)
        place = f"{self.build_config.builder.artifact_project_id}.dist-info/top_level.txt"
        build_data["force_include_editable" if version == "editable" else "force_include"][str(file)] = place

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._folder.cleanup()
