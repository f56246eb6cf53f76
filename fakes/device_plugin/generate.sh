#!/bin/sh
# Writes api_pb2.py and api_pb2.pyi anew, from the proto file of the kubelet module that controlplane/kube/go.mod pins.
# Needs Go, and grpcio-tools in the Python that is called: PYTHON=/path/to/python fakes/device_plugin/generate.sh
set -eu
cd "$(dirname "$0")/../.."
module=$(cd controlplane/kube && go mod download && go list -m -f '{{.Dir}}' k8s.io/kubelet)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/fakes/device_plugin"
# Under our own path: a name like api.proto could be taken in the process-wide pool of descriptors.
cp "$module/pkg/apis/deviceplugin/v1beta1/api.proto" "$tmp/fakes/device_plugin/api.proto"
"${PYTHON:-python3}" -m grpc_tools.protoc -I"$tmp" --python_out=. --pyi_out=. fakes/device_plugin/api.proto
