"""Where requests go and in what form: the API's flavour, headers, the key, the trust in its certificate."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from harness.errors import BadInput
from harness.run.load.tls import client_context

CHAT, COMPLETIONS = "chat", "completions"
_PATHS = {CHAT: "/chat/completions", COMPLETIONS: "/completions"}


@dataclass(frozen=True, slots=True)
class Api:
    """``url`` is the base of an OpenAI-compatible server, with or without its ``/v1``.

    The key itself is in the environment only, under the name ``key_env``: never in a file, a record or a log.
    """

    url: str
    model: str
    flavour: str = CHAT
    headers: Mapping[str, str] = field(default_factory=dict)
    key_env: str | None = None
    ca_file: Path | None = None

    @property
    def path(self) -> str:
        """What follows the path of ``url``."""
        base = urlsplit(self.url).path.rstrip("/")
        return _PATHS[self.flavour] if base.endswith("/v1") else f"/v1{_PATHS[self.flavour]}"

    def key(self) -> str | None:
        """Raises BadInput where a key is asked for and the environment has none."""
        if self.key_env is None:
            return None
        key = os.environ.get(self.key_env, "").strip()
        if not key:
            raise BadInput(
                f"the API key should be in the environment variable {self.key_env}, which is not set",
                hint=f"export {self.key_env}=… before the run",
            )
        return key

    def all_headers(self) -> dict[str, str]:
        key = self.key()
        return dict(self.headers) | ({"Authorization": f"Bearer {key}"} if key else {})

    def tls_context(self) -> ssl.SSLContext:
        return client_context(self.ca_file)
