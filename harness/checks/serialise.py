"""``verdict.json``: a verdict as stable bytes, and back."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from harness.errors import BadInput, Where
from harness.verdict import Diagnosis, Evidence, Finding, Role, Status, Value, Verdict

EVIDENCE_ROWS = 500
"""Rows of evidence that are written of one finding, the telling ones first; ``explain`` gives all."""
VERDICT_SCHEMA = "gpu-harness/verdict/1"
"""The version of what is written here: ``harness/schemas/verdict.json``."""


def verdict_to_json(verdict: Verdict) -> str:
    """Equal verdicts are equal bytes. Holds no time of day and no path, so ``check`` repeats it on any machine."""
    document = {
        "schema": VERDICT_SCHEMA,
        "status": verdict.status.value,
        "exit_code": int(verdict.exit_code),
        "sentence": verdict.sentence,
        "causes": [_cause(cause) for cause in verdict.causes],
        "findings": [_finding(finding) for finding in verdict.findings],
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def verdict_from_json(text: str) -> Verdict:
    """Raises ``ValueError`` or ``KeyError`` when the text is no verdict of ours."""
    raw = json.loads(text)
    findings = tuple(_read_finding(item) for item in raw["findings"])
    causes = tuple(_read_cause(item) for item in raw.get("causes", ()))
    return Verdict(Status(raw["status"]), str(raw["sentence"]), findings, causes)


def load_verdict(path: Path) -> Verdict:
    try:
        return verdict_from_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput(
            "there is no verdict here", where=Where(str(path)), hint="run 'gpu-harness check' first"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(
            f"this is no verdict: {error!r}", where=Where(str(path)), hint="write it anew with 'check'"
        ) from error


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "check": finding.check,
        "role": finding.role.value,
        "status": finding.status.value,
        "judged": finding.judged.value if finding.judged else None,
        "because": finding.because,
        "sentence": finding.sentence,
        "story": finding.story,
        "exercised": finding.exercised,
        "needs": list(finding.needs),
        "numbers": _values(finding.numbers),
        "evidence": [_row(row) for row in finding.evidence[:EVIDENCE_ROWS]],
        "evidence_rows": len(finding.evidence),
    }


def _row(row: Evidence) -> dict[str, Any]:
    return {"ref": row.ref, "t_ns": row.t_ns, "text": row.text, "facts": _values(row.facts)}


def _read_row(raw: dict[str, Any]) -> Evidence:
    return Evidence(raw["ref"], raw["t_ns"], raw["text"], dict(raw["facts"]))


def _cause(cause: Diagnosis) -> dict[str, Any]:
    return {
        "sentence": cause.sentence,
        "component": cause.component,
        "act": cause.act,
        "since_ns": cause.since_ns,
        "when": cause.when,
        "scope": cause.scope,
        "inferred": cause.inferred,
        "otherwise": cause.otherwise,
        "change": cause.change,
        "explains": list(cause.explains),
        "then": list(cause.then),
        "testify": list(cause.testify),
        "evidence": [_row(row) for row in cause.evidence],
    }


def _read_cause(raw: dict[str, Any]) -> Diagnosis:
    own = {key: value for key, value in raw.items() if key != "sentence"}
    for key in ("explains", "then", "testify"):
        own[key] = tuple(own[key])
    return Diagnosis(**{**own, "evidence": tuple(_read_row(row) for row in own["evidence"])})


def _read_finding(raw: dict[str, Any]) -> Finding:
    return Finding(
        check=raw["check"],
        role=Role(raw["role"]),
        status=Status(raw["status"]),
        sentence=raw["sentence"],
        exercised=int(raw["exercised"]),
        numbers=dict(raw["numbers"]),
        evidence=tuple(_read_row(row) for row in raw["evidence"]),
        needs=tuple(raw["needs"]),
        judged=Status(raw["judged"]) if raw["judged"] else None,
        because=raw["because"],
        story=str(raw.get("story", "")),
    )


def _values(values: dict[str, Value]) -> dict[str, Value]:
    """JSON has no infinity; what is not finite was not measured."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in values.items()
    }
