"""What stands under the name of a secret is not kept, and nothing else is changed."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.hiding import HIDDEN, LAST_APPLIED, without_secrets
from harness.run.load.records import Records
from harness.run.rundir import create, keep_spec

SECRET = "planted-hf_0123456789"
CONTAINER: dict[str, Any] = {
    "name": "vllm",
    "args": ["--api-key", SECRET, f"--hf-token={SECRET}", "--max-num-batched-tokens", "8192", "--model", "m"],
    "env": [{"name": "HF_TOKEN", "value": SECRET}, {"name": "AWS_SECRET_ACCESS_KEY", "value": SECRET},
            {"name": "VLLM_MAX_TOKENS", "value": "5"}, {"name": "X_KEY", "valueFrom": {"secretKeyRef": {}}}],
}  # fmt: skip
POD = {"kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [CONTAINER], "initContainers": [CONTAINER]}}
DEPLOYMENT = {"kind": "Deployment", "metadata": {"name": "a"}, "spec": {"replicas": 1, "template": POD}}
APPLIED = {"kind": "Service", "metadata": {"annotations": {LAST_APPLIED: SECRET, "other": "1"}}, "spec": {}}
SECRETS = {"kind": "Secret", "metadata": {"name": "s"}, "data": {"a": SECRET}, "stringData": {"b": SECRET}}

CALLS = {"type": "http", "url": "http://x", "headers": {"Authorization": SECRET, "X-Api-Key": SECRET, "Accept": "*/*"}}
EXPERIMENT = {
    "title": "t",
    "secrets": {"k": {"a": SECRET, "b": {"type": "env", "key": "B"}}},
    "configuration": {"api_key": SECRET, "key": {"type": "env", "key": "K"}, "where": "eu"},
    "method": [{"type": "action", "name": "a", "provider": CALLS}],
}


@pytest.mark.parametrize("obj", [POD, DEPLOYMENT, APPLIED, SECRETS], ids=lambda o: o["kind"])
def test_secrets_are_hidden_in_a_copy(obj: dict[str, Any]) -> None:
    before = deepcopy(obj)
    clean = without_secrets(obj)
    assert SECRET not in str(clean) and obj == before
    assert "8192" in str(clean) or "8192" not in str(before)
    assert without_secrets(clean) == clean


def test_what_has_no_secret_is_the_same_object() -> None:
    plain = {"kind": "Pod", "metadata": {}, "spec": {"containers": [{"name": "c", "args": ["--max-tokens", "5"]}]}}
    assert without_secrets(plain) is plain
    assert without_secrets({"kind": "Node"}) == {"kind": "Node"}


def test_the_kept_spec_has_none_and_is_the_file_itself_elsewhere(tmp_path: Path) -> None:
    experiment, plain, secret = tmp_path / "e.yaml", tmp_path / "plain.yaml", tmp_path / "secret.yaml"
    experiment.write_text(yaml.safe_dump(EXPERIMENT))
    plain.write_text("# as it is\nkind: Pod\n")
    secret.write_text(yaml.safe_dump_all([SECRETS, DEPLOYMENT]))
    run = create(tmp_path / "reports", experiment)
    keep_spec(run, experiment, [plain, secret])
    spec = run.path / "spec"
    assert not [file for file in spec.iterdir() if SECRET in file.read_text()]
    assert (spec / "plain.yaml").read_text() == plain.read_text()
    kept = yaml.safe_load((spec / "e.yaml").read_text())
    assert kept["secrets"]["k"] == {"a": HIDDEN, "b": {"type": "env", "key": "B"}}
    assert kept["configuration"] == {"api_key": HIDDEN, "key": {"type": "env", "key": "K"}, "where": "eu"}
    headers = kept["method"][0]["provider"]["headers"]
    assert headers == {"Authorization": HIDDEN, "X-Api-Key": HIDDEN, "Accept": "*/*"}


@pytest.mark.parametrize("cut", [len(SECRET), len(SECRET) - 1, 8])
def test_a_key_that_a_server_quotes_is_hidden_even_where_the_quote_was_cut(tmp_path: Path, cut: int) -> None:
    records = Records(tmp_path / "records.jsonl", SECRET)
    records.end({"request_id": 1, "reason": f"401 no such key {SECRET[:cut]}", "pod": "a"})
    records.close()
    text = (tmp_path / "records.jsonl").read_text()
    assert SECRET[:6] not in text and '"[API key]"' not in text and "[API key]" in text
