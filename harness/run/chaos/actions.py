"""Actions for experiments: ``module: harness.run.chaos.actions``. All times are scenario seconds.

There is one for each fault of the registry, made from its class: same name, same arguments, same words. Each waits for
its scenario second ``after_s``, counted from the load's start, injects its fault, and returns once the fault was seen
to take effect and its own course is over. What it raises is written to the history as well.
"""

# No postponed annotations here: `chaos discover` reads the types of the signatures as they are.

import inspect
from collections.abc import Callable
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from harness.errors import BadInput, HarnessError
from harness.faults.fault import Fault
from harness.faults.heal import HealReport, open_ground
from harness.faults.life import FaultResult
from harness.faults.log import FaultLog
from harness.faults.registry import FAULTS
from harness.kube.port import ApiError
from harness.run.chaos import control
from harness.run.chaos.context import RunContext, current
from harness.run.chaos.lib import ActivityFailed, InterruptExecution
from harness.run.playing import Play, play
from harness.spec.model import SpecModel

__all__ = ["heal", *FAULTS]  # names of the registry, which are text


def heal() -> dict[str, Any]:
    """Undoes whatever the harness has changed so far. Idempotent, and not to be interrupted."""
    try:
        report: HealReport = control.heal(current())
    except HarnessError as error:
        raise ActivityFailed(str(error)) from error
    if not report.clean:
        raise ActivityFailed("; ".join((*report.errors, *(f"left: {line}" for line in report.left))))
    return {"planned": report.planned, "undone": list(report.undone)}


def _action(kind: type[Fault]) -> Callable[..., dict[str, Any]]:
    """The function that Chaos Toolkit calls, with the signature that its validation and ``discover`` read."""

    def action(**arguments: Any) -> dict[str, Any]:
        return _play(_read(kind, arguments))

    module_doc = inspect.getdoc(inspect.getmodule(kind)) or ""
    action.__name__ = action.__qualname__ = kind.name
    action.__doc__ = f"{module_doc}\n\n{inspect.getdoc(kind)}"
    parameters = [_parameter(name, field) for name, field in kind.model_fields.items()]
    action.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # functions carry one when it is set
        sorted(parameters, key=lambda p: p.default is not inspect.Parameter.empty), return_annotation=dict[str, Any]
    )
    return action


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    # Plain `chaos run` may leave out when an action begins: then it does when its turn comes.
    default = 0.0 if name == "after_s" else field.get_default(call_default_factory=True)
    return inspect.Parameter(
        name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,  # of keyword-only ones `chaos discover` knows nothing
        annotation=_plain(field.annotation),
        default=inspect.Parameter.empty if default is PydanticUndefined else default,
    )


def _plain(annotation: Any) -> Any:
    """The type that `chaos discover` can name: what may be left out counts as what it holds when it is there."""
    options = [option for option in get_args(annotation) if option is not type(None)]
    if get_origin(annotation) is Literal:
        return type(options[0])
    if get_origin(annotation) in (Union, UnionType):
        return _plain(options[0])
    if get_origin(annotation) is Annotated:
        return options[0]
    if inspect.isclass(annotation) and issubclass(annotation, SpecModel):
        return dict[str, Any]
    return annotation


def _read(kind: type[Fault], values: dict[str, Any]) -> Fault:
    try:
        return kind.model_validate({"after_s": 0.0, **values})
    except ValidationError as error:
        said = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise ActivityFailed(f"{kind.name}: {said}") from error


def _play(fault: Fault) -> dict[str, Any]:
    try:
        run = current()
        fault_id = control.current_fault_id()
        if fault_id is None:
            raise BadInput(f"{fault.name} is an action of the method; it has no place elsewhere")
        result = run.interruption.run(_play_async(run, fault, fault_id))
    except InterruptExecution:
        raise
    except (HarnessError, ApiError, OSError) as error:
        raise ActivityFailed(str(error) or type(error).__name__) from error
    return {
        "fault_id": result.fault_id,
        "targets": list(result.targets),
        "observed": result.observed,
        "ended": result.ended,
    }


async def _play_async(run: RunContext, fault: Fault, fault_id: str) -> FaultResult:
    late_s = await run.wait_for_scenario_s(fault.after_s)
    planned = run.plan.targets.get(fault_id, ())
    async with open_ground(
        run.run_dir, run.connection, run.clock, selector=run.settings.selector, manifest=run.manifest
    ) as ground:
        what = Play(fault, fault_id, run.plan.seed, planned)
        return await play(what, ground, FaultLog(run.run_dir, run.clock), late_s)


globals().update({name: _action(kind) for name, kind in FAULTS.items()})
