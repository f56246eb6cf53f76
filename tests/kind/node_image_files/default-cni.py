"""A container network for kind's nodes in place of kindnet, whose image is in no module: the plugin ptp with the node's
own range of addresses, and one route to each other node."""

import json
import os
import ssl
import subprocess
import time
import urllib.request

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
CONFIG = "/etc/cni/net.d/10-kindnet.conflist"
NODES = f"https://{os.environ['CONTROL_PLANE_ENDPOINT']}/api/v1/nodes"
ME = os.environ["NODE_NAME"]


def nodes() -> list:
    context = ssl.create_default_context(cafile=f"{ACCOUNT}/ca.crt")
    with open(f"{ACCOUNT}/token") as token:
        request = urllib.request.Request(NODES, headers={"Authorization": f"Bearer {token.read()}"})
    with urllib.request.urlopen(request, context=context, timeout=10) as answer:
        return json.load(answer)["items"]


def configure(cidr: str) -> None:
    addresses = {
        "type": "host-local",
        "dataDir": "/run/cni-ipam-state",
        "routes": [{"dst": "0.0.0.0/0"}],
        "ranges": [[{"subnet": cidr}]],
    }
    plugins = [
        {"type": "ptp", "ipMasq": False, "mtu": 1500, "ipam": addresses},
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ]
    with open(CONFIG + ".part", "w") as file:
        json.dump({"cniVersion": "0.3.1", "name": "kindnet", "plugins": plugins}, file)
    os.rename(CONFIG + ".part", CONFIG)


def keep_up(known: dict) -> None:
    for node in nodes():
        name, cidr = node["metadata"]["name"], node["spec"].get("podCIDR")
        addresses = node["status"].get("addresses") or ()
        address = next((a["address"] for a in addresses if a["type"] == "InternalIP"), None)
        if not cidr or not address or known.get(name) == (cidr, address):
            continue
        if name == ME:
            configure(cidr)
        else:
            subprocess.run(["ip", "route", "replace", cidr, "via", address], check=True)
        known[name] = (cidr, address)


known: dict = {}
while True:
    try:
        keep_up(known)
        time.sleep(2)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        print(repr(error), flush=True)
        time.sleep(0.5)
