"""The Jepsen of GPU inference clusters. ``discover`` is what ``chaos discover gpu-harness`` asks for."""

from harness.run.chaos import discover

__all__ = ["discover"]
