"""The certificates of a run are accepted by a strict client, for the names they were made for and no other."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from harness.stack.certificates import Authority, Pair, signing_key


async def say(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> bytes:
    """What a client that expects ``name`` reads from a server."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=server) as listening:
        port = listening.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client, server_hostname=name)
        try:
            return await reader.read()
        finally:
            writer.close()


def contexts(server: Pair, client_trusts: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(server.certificate, server.key)
    asking = ssl.create_default_context(cafile=client_trusts)
    asking.verify_flags |= ssl.VERIFY_X509_STRICT
    return serving, asking


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
async def test_the_name_and_the_address_are_accepted(tmp_path: Path, name: str) -> None:
    authority = Authority("ca", tmp_path)
    pair = authority.issue("server", hosts=("localhost", "127.0.0.1"))
    assert await say(*contexts(pair, authority.certificate), name) == b"hello"


async def test_another_name_and_another_authority_are_refused(tmp_path: Path) -> None:
    authority, other = Authority("ca", tmp_path), Authority("other", tmp_path)
    pair = authority.issue("server", hosts=("localhost",))
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        await say(*contexts(pair, authority.certificate), "kubernetes.default.svc")
    with pytest.raises(ssl.SSLCertVerificationError):
        await say(*contexts(pair, other.certificate), "localhost")


def test_keys_are_their_owners_alone(tmp_path: Path) -> None:
    pair = Authority("ca", tmp_path).issue("user", groups=("system:masters",))
    private, public = signing_key(tmp_path, "tokens")
    assert [path.stat().st_mode & 0o777 for path in (pair.key, private)] == [0o600, 0o600]
    assert b"PRIVATE" not in public.read_bytes()
