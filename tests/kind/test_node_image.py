"""By what the node image is kept: an edit that changes nothing of it does not make a new one."""

from __future__ import annotations

from pathlib import Path

import node_image_recipe
from node_image import key_of

STEPS = Path(node_image_recipe.__file__).read_text()
KEY = key_of(STEPS, [b"a"], ["kubelet 1", "etcd 2"])


def test_words_about_it_change_nothing() -> None:
    said = STEPS.replace(
        '"""What kind\'s own Dockerfile does, in its order."""', '"""Otherwise said."""\n    # And more.'
    )
    assert said != STEPS
    assert key_of(said, [b"a"], ["etcd 2", "kubelet 1"]) == KEY


def test_what_it_is_made_of_and_how_changes_it() -> None:
    others = (
        key_of(STEPS.replace('"socat", ', ""), [b"a"], ["kubelet 1", "etcd 2"]),
        key_of(STEPS.replace('"enable", "kubelet.service"', '"enable"'), [b"a"], ["kubelet 1", "etcd 2"]),
        key_of(STEPS, [b"b"], ["kubelet 1", "etcd 2"]),
        key_of(STEPS, [b"a"], ["kubelet 2", "etcd 2"]),
    )
    assert len({KEY, *others}) == 5
