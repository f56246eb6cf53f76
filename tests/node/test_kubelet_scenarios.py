"""The scenarios that are played beside real kubelets, on hollow ones alone: what those do, by their own clock."""

from __future__ import annotations

from kubelet_beside import apart, hollow, table


def test_hollow_kubelets_do_what_real_ones_were_seen_to_do() -> None:
    """As measured with kubelet 1.37.2: docs/fidelity.md."""
    seen = hollow()
    words = {name: said for name, said in seen.items() if isinstance(said, str)}
    assert words == {
        "no plugin ever: capacity": "no key",
        "no plugin ever: allocatable": "no key",
        "Allocate hangs for 30 s: node is Ready after 22 s": "True",
        "Allocate hangs for 30 s: a pod without GPUs after 22 s": "Pending",
        "Allocate hangs for 30 s: a deleted pod after 22 s": "Running",
        "evicted, exits 0: MemoryPressure": "True",
        "evicted, exits 0: phase": "Succeeded",
        "evicted, exits 0: reason": "none",
        "evicted, exits 0: DisruptionTarget": "TerminationByKubelet",
        "reboot, plugin late: both outcomes": "seen",
        "reboot, plugin late: the GPU pod": "Failed (UnexpectedAdmissionError)",
        "reboot, plugin late: the pod without": "Running",
        "plugin gone: capacity meanwhile": "2",
        "plugin gone: its key then": "0",
        "all four silent: nodes with NoExecute 25 s later": "0",
    }
    real = {
        "a device unhealthy: allocatable follows after": 9.3,
        "healthy again: allocatable follows after": 10.3,
        "plugin gone: allocatable 0 after": 9.2,
        "evicted, exits 0: over after": 12.8,
        "plugin gone: capacity 0 after": 305.1,
        "two of four silent: NoExecute on the first after": 48.9,
        "two of four silent: on the second, s after that": 9.5,
        "all four silent: Ready is Unknown on all after": 58.4,
    }
    assert [name for name, seconds in real.items() if apart(name, seconds, seen[name])] == []


def test_words_must_be_the_same_and_seconds_about_the_same() -> None:
    text, differs = table({"a": 10.0, "b": "0", "c": "gone"}, {"a": 15.0, "b": "no key", "c": "gone"})
    assert differs == ["b"]
    assert text.splitlines()[-2:] == ["| b | no key | 0 **differs** |", "| c | gone | gone |"]
    assert apart("a", 10.0, 30.0)
    assert apart("a", 10.0, "not within 20 s")
    assert apart("a", 10.0, None)
