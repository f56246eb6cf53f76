"""``verdict.json``: a verdict as stable bytes, and back."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from harness.errors import BadInput, Where
from harness.verdict import Evidence, Finding, Role, Status, Value, Verdict

VERDICT_SCHEMA = "gpu-harness/verdict/1"
"""The version of what is written here: ``harness/schemas/verdict.json``."""


def verdict_to_json(verdict: Verdict) -> str:
    """Equal verdicts are equal bytes. Holds no time of day and no path, so ``check`` repeats it on any machine."""
    document = {
        "schema": VERDICT_SCHEMA,
        "status": verdict.status.value,
        "exit_code": int(verdict.exit_code),
        "sentence": verdict.sentence,
        "findings": [_finding(finding) for finding in verdict.findings],
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def verdict_from_json(text: str) -> Verdict:
    """Raises ``ValueError`` or ``KeyError`` when the text is no verdict of ours."""
    raw = json.loads(text)
    return Verdict(Status(raw["status"]), str(raw["sentence"]), tuple(_read_finding(item) for item in raw["findings"]))


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
        "evidence": [
            {"ref": row.ref, "t_ns": row.t_ns, "text": row.text, "facts": _values(row.facts)}
            for row in finding.evidence
        ],
    }


def _read_finding(raw: dict[str, Any]) -> Finding:
    return Finding(
        check=raw["check"],
        role=Role(raw["role"]),
        status=Status(raw["status"]),
        sentence=raw["sentence"],
        exercised=int(raw["exercised"]),
        numbers=dict(raw["numbers"]),
        evidence=tuple(Evidence(row["ref"], row["t_ns"], row["text"], dict(row["facts"])) for row in raw["evidence"]),
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
