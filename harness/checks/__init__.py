"""Pure functions of a history: each answers pass, fail or unknown, with the evidence."""

from harness.checks.registry import CHECKS, VALIDITY, judge
from harness.checks.verdict_file import VERDICT_FILE, load_verdict, verdict_from_json, verdict_to_json

__all__ = ["CHECKS", "VALIDITY", "VERDICT_FILE", "judge", "load_verdict", "verdict_from_json", "verdict_to_json"]
