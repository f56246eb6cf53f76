"""Pods that listen at the addresses of their status."""

from __future__ import annotations

import socket

import pytest

from fakes.nodes.loopback import MACHINES_MAX, Loopback


def test_two_worlds_have_ranges_of_their_own_and_give_them_back() -> None:
    one, two = Loopback(), Loopback()
    first = one.address(3, 1)
    assert first.split(".")[0] == "127" and first != two.address(3, 1)
    one.close()
    again = Loopback()
    assert again.address(3, 1) == first
    again.close()
    two.close()


def test_every_address_can_be_listened_on_and_none_is_given_twice() -> None:
    loopback = Loopback()
    addresses = {loopback.address(machine, number) for machine in (0, 1, 255) for number in range(250)}
    assert len(addresses) == 3 * 250
    for address in (min(addresses), max(addresses)):
        with socket.create_server((address, 0)) as server, socket.create_connection(server.getsockname()):
            pass
    with pytest.raises(OSError, match="256 machines"):
        loopback.address(MACHINES_MAX, 0)
    loopback.close()
