"""What dcgm-exporter says of one node's GPUs, in its own words.

Names, helps and labels of dcgm-exporter 4 with its default counters, as far as a hollow GPU has them. Two of them are
traps for autoscaling, on purpose: GPU_UTIL is a duty cycle, near 100 as soon as anything runs, and FB_USED is what a
model server has taken in advance, the same from the first request to the last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fakes.nodes.gpus import Gpu

DRIVER = "570.124.06"
UTIL, FB_USED, FB_FREE, XID = (
    "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_XID_ERRORS",
)  # fmt: skip
HELP = {
    UTIL: "GPU utilization (in %).",
    FB_USED: "Framebuffer memory used (in MiB).",
    FB_FREE: "Framebuffer memory free (in MiB).",
    XID: "Value of the last XID error encountered.",
}
TOTAL_MIB = {"NVIDIA-H100-80GB-HBM3": 81_559, "NVIDIA-A100-SXM4-40GB": 40_960, "NVIDIA-A100-SXM4-80GB": 81_920}
UNHEALTHY_XID = 79
"""GPU has fallen off the bus."""


def total_mib(product: str) -> int:
    """A GPU's memory, by its product label; by the figure in its name where the product is not known."""
    if product in TOTAL_MIB:
        return TOTAL_MIB[product]
    found = re.search(r"(\d+)GB", product)
    return int(found[1]) * 1024 if found else 16_384


def values(gpu: Gpu, product: str) -> dict[str, int]:
    total = total_mib(product)
    used = round(gpu.use.memory * total)
    return {
        UTIL: round(gpu.use.busy * 100),
        FB_USED: used,
        FB_FREE: total - used,
        XID: 0 if gpu.healthy else UNHEALTHY_XID,
    }


def exposition(node: str, product: str, gpus: Sequence[Gpu]) -> str:
    """The text of the node's exporter."""
    return "".join(f"{line}\n" for line in _lines(node, product, gpus))


def _lines(node: str, product: str, gpus: Sequence[Gpu]) -> Iterator[str]:
    rows = [(_labels(node, product, gpu), values(gpu, product)) for gpu in gpus]
    for name, help in HELP.items():
        yield f"# HELP {name} {help}"
        yield f"# TYPE {name} gauge"
        for labels, said in rows:
            yield f"{name}{{{labels}}} {said[name]}"


def _labels(node: str, product: str, gpu: Gpu) -> str:
    parts = {
        "gpu": str(gpu.index),
        "UUID": gpu.id,
        "pci_bus_id": f"00000000:{0x10 + gpu.index * 8:02X}:00.0",
        "device": f"nvidia{gpu.index}",
        "modelName": product.replace("-", " "),
        "Hostname": node,
        "DCGM_FI_DRIVER_VERSION": DRIVER,
    }
    if gpu.pod:
        parts |= {"container": gpu.container, "namespace": gpu.namespace, "pod": gpu.pod}
    return ",".join(f'{key}="{value}"' for key, value in parts.items())
