"""What we publish about verdict.json is what we write."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from demo import demo
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from harness.checks.judge import judge
from harness.checks.serialise import EVIDENCE_ROWS, VERDICT_SCHEMA, load_verdict, verdict_to_json
from harness.history.reader import History
from harness.schemas import SCHEMAS, schema_text
from harness.spec.checks import CHECK_SPECS, GangSpec, GracefulDrainSpec, PdbSpec, SloSpec
from harness.verdict import Evidence, Finding, Role, Status, Verdict, merge

SAMPLE = Path(__file__).resolve().parents[3] / "reports" / "sample" / "verdict.json"
SPECS = (
    SloSpec.model_validate({"ttft_ms_p95": 3000, "phase": "fault"}),
    SloSpec.model_validate({"ttft_ms_p95": 1}),
    GracefulDrainSpec(), PdbSpec(), GangSpec(atomicity_s_max=60.0),
)  # fmt: skip
INFINITE = Finding("x", Role.CHECK, Status.FAIL, "s", 1, {"a": float("inf")}, (Evidence("undo", None, "", {}),))
VERDICTS: dict[str, Callable[[], Verdict]] = {
    "good": lambda: judge(demo(), SPECS),
    "cut": lambda: judge(demo(cut=3), SPECS),
    "empty": lambda: judge(History(), SPECS),
    "nothing asked": lambda: judge(History(), []),
    "a figure that is not finite": lambda: merge([INFINITE]),
}


@pytest.fixture(scope="module")
def schema() -> Draft202012Validator:
    document = json.loads(schema_text("verdict"))
    Draft202012Validator.check_schema(document)
    return Draft202012Validator(document)


@pytest.mark.parametrize("name", VERDICTS)
def test_what_is_written_keeps_to_the_schema(schema: Draft202012Validator, name: str) -> None:
    schema.validate(json.loads(verdict_to_json(VERDICTS[name]())))


def test_the_sample_keeps_to_the_schema(schema: Draft202012Validator) -> None:
    schema.validate(json.loads(SAMPLE.read_text()))
    assert load_verdict(SAMPLE).status is Status.PASS


def test_the_schema_says_every_key_and_word_that_is_written(schema: Draft202012Validator) -> None:
    document: dict[str, Any] = json.loads(verdict_to_json(merge([INFINITE])))
    words = schema.schema["$defs"]
    (finding,) = document["findings"]
    # Causes and the number of evidence rows came within the version, so that older files have none.
    assert set(document) == set(schema.schema["properties"]) == set(schema.schema["required"]) | {"causes"}
    assert set(finding) == set(words["finding"]["properties"]) == set(words["finding"]["required"]) | {"evidence_rows"}
    assert set(finding["evidence"][0]) == set(words["evidence"]["properties"]) == set(words["evidence"]["required"])
    assert set(words["status"]["enum"]) == {status.value for status in Status}
    assert set(words["finding"]["properties"]["role"]["enum"]) == {role.value for role in Role}
    assert schema.schema["properties"]["schema"]["const"] == VERDICT_SCHEMA
    assert schema.schema["$id"].split(":")[2:] == VERDICT_SCHEMA.split("/")[1:]


@pytest.mark.parametrize(
    "key, value",
    [("status", "passed"), ("exit_code", 1), ("schema", "gpu-harness/verdict/2"), ("findings", [{"check": "x"}])],
)
def test_the_schema_refuses_what_is_none(schema: Draft202012Validator, key: str, value: object) -> None:
    with pytest.raises(ValidationError):
        schema.validate(json.loads(SAMPLE.read_text()) | {"schema": VERDICT_SCHEMA} | {key: value})


def test_each_check_has_a_name_that_the_schema_allows() -> None:
    assert all(name for name in CHECK_SPECS)
    assert set(SCHEMAS) == {"verdict"}


def test_of_many_rows_of_evidence_the_first_are_written_and_all_are_counted() -> None:
    rows = tuple(Evidence(f"requests:{n}", n, "late") for n in range(EVIDENCE_ROWS + 3))
    (finding,) = json.loads(verdict_to_json(merge([replace(INFINITE, evidence=rows)])))["findings"]
    assert len(finding["evidence"]) == EVIDENCE_ROWS
    assert finding["evidence_rows"] == EVIDENCE_ROWS + 3
