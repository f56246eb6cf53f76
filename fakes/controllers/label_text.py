"""A LabelSelector object as text: as queries take it, and as Go prints it in events and conditions."""

from __future__ import annotations

from collections.abc import Sequence

from harness.kube.port import Json


def selector_text(selector: Json) -> str:
    """A LabelSelector object as the text that a query takes."""
    parts = [f"{k}={v}" for k, v in sorted((selector.get("matchLabels") or {}).items())]
    for expression in selector.get("matchExpressions") or []:
        parts.append(_expression_text(expression["key"], expression["operator"], expression.get("values") or []))
    return ",".join(parts)


def _expression_text(key: str, operator: str, values: Sequence[str]) -> str:
    joined = ",".join(sorted(values))
    texts = {"In": f"{key} in ({joined})", "NotIn": f"{key} notin ({joined})", "Exists": key, "DoesNotExist": f"!{key}"}
    return texts[operator]


def selector_in_go(selector: Json | None) -> str:
    """As Go prints a ``*metav1.LabelSelector`` with ``%+v``."""
    if selector is None:
        return "nil"
    labels = "".join(f"{k}: {v}," for k, v in sorted((selector.get("matchLabels") or {}).items()))
    rows = []
    for e in selector.get("matchExpressions") or []:
        values = " ".join(e.get("values") or [])
        rows.append(f"LabelSelectorRequirement{{Key:{e['key']},Operator:{e['operator']},Values:[{values}],}},")
    expressions = f"[]LabelSelectorRequirement{{{''.join(rows)}}}"
    return f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:{expressions},}}"
