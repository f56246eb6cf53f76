"""What kube-controller-manager counts in seconds, by the flag that sets it: the defaults of Kubernetes 1.37."""

from __future__ import annotations

PERIODS_S = {
    "node-monitor-period": 5.0,
    "node-monitor-grace-period": 50.0,
    "node-startup-grace-period": 60.0,
    "horizontal-pod-autoscaler-sync-period": 15.0,
    "horizontal-pod-autoscaler-downscale-stabilization": 300.0,
    "horizontal-pod-autoscaler-initial-readiness-delay": 30.0,
    "horizontal-pod-autoscaler-cpu-initialization-period": 300.0,
}
NODES_PER_S = {"node-eviction-rate": 0.1, "secondary-node-eviction-rate": 0.01}
