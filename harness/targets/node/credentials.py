"""What the API server knows nodes by: a client certificate for each name that a node of the run may have.

They are made before the machines are, by who holds the authority's key, which is never written down.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

from fakes.config import PoolConfig
from harness.errors import TargetError
from harness.stack.certificates import Authority

NEW_NAMES = 24
"""For each pool beyond its stock: a machine that replaces another has a name of its own."""
_AUTHORITY = "ca.crt"


def names_of(pools: Iterable[PoolConfig]) -> list[str]:
    return [f"{pool.name}-{n}" for pool in pools for n in range(1, pool.stock + NEW_NAMES + 1)]


def issue_credentials(authority: Authority, folder: Path, names: Iterable[str]) -> None:
    """Certificates of ``system:node:NAME`` in the group ``system:nodes``, in ``folder``."""
    folder.mkdir(mode=0o700, exist_ok=True)
    shutil.copy(authority.certificate, folder / _AUTHORITY)
    for name in names:
        pair = authority.issue(f"system:node:{name}", groups=("system:nodes",))
        pair.certificate.rename(folder / f"{name}.crt")
        pair.key.rename(folder / f"{name}.key")


def place_credentials(folder: Path, node: str, state: Path, api_url: str) -> None:
    """Certificate, key, authority and kubeconfig of one node, in its own folder ``state``."""
    if not (folder / f"{node}.key").exists():
        raise TargetError(
            f"the API server would not know {node}: certificates were made for {NEW_NAMES} names beyond the stock of "
            "each pool",
            hint="a run in which a pool's machines are replaced so often is not foreseen on --target node",
        )
    pki = state / "pki"
    pki.mkdir(mode=0o700, exist_ok=True)
    for source, name in ((f"{node}.crt", "client.crt"), (f"{node}.key", "client.key"), (_AUTHORITY, _AUTHORITY)):
        shutil.copy(folder / source, pki / name)
    # Its certificate names 127.0.0.1; machines reach it by another address.
    cluster = {"server": api_url, "certificate-authority": f"pki/{_AUTHORITY}", "tls-server-name": "localhost"}
    user = {"client-certificate": "pki/client.crt", "client-key": "pki/client.key"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    (state / "kubeconfig").write_text(json.dumps(config, indent=1))
