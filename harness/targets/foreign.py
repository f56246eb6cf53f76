"""A cluster that others made: which one is meant, and what it looks like before anything is planned. Reads only."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

from harness.errors import BadInput, GuardRefused, TargetError, Where
from harness.faults.fidelity import KUBECONFIG
from harness.faults.fleet import read_fleet
from harness.faults.guards import check_namespace, check_system_namespace
from harness.faults.pick import FleetNode
from harness.kube.http import HttpKube, current_context
from harness.kube.port import NAMESPACE, NODE_POOL, POD, ApiError, NotFound
from harness.spec.experiment import Experiment
from harness.stack.installed import check_installed
from harness.targets.base import Connection


@dataclass(frozen=True, slots=True)
class Foreign:
    """What a person says of it. ``url`` is the base of the OpenAI-compatible endpoint that the load goes to."""

    kubeconfig: Path
    context: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Survey:
    """What was there when the run was prepared."""

    connection: Connection
    fleet: tuple[FleetNode, ...]
    pools: tuple[str, ...]
    version: str


def check_context(kubeconfig: Path | None, context: str | None) -> tuple[Path, str]:
    """The context must be named, and be the file's current one, so that nobody breaks, or heals, the cluster that
    yesterday's shell left there. BadInput."""
    if kubeconfig is None or context is None:
        raise BadInput("--target kubeconfig needs --kubeconfig and --context", where=Where("--target"))
    current = current_context(kubeconfig)
    if context != current:
        raise BadInput(
            f"the current context of {kubeconfig} is {current!r}, and --context says {context!r}",
            where=Where("--context"), hint="name the context that you mean, and make it the current one",
        )  # fmt: skip
    return kubeconfig, current


def foreign_of(
    target: str, kubeconfig: Path | None, context: str | None, url: str | None, *, yes: bool
) -> Foreign | None:
    """From the command line; None for a target that is not of others. BadInput for flags that mean nothing there."""
    if target == KUBECONFIG:
        return Foreign(*check_context(kubeconfig, context), url or "")
    if kubeconfig is not None or context is not None or url is not None or yes:
        raise BadInput(
            "--kubeconfig, --context, --url and --yes are for a cluster of others", where=Where("--target"),
            hint="add --target kubeconfig",
        )  # fmt: skip
    return None


def check_experiment(experiment: Experiment, foreign: Foreign) -> str:
    """The service's URL. BadInput for what an experiment asks and nobody can give in a cluster of others."""
    settings = experiment.settings
    where = f"extensions.{experiment.settings.at[-1]}" if experiment.settings.at else "extensions"
    if settings.time_scale != 1:
        raise BadInput(
            f"time_scale is {settings.time_scale:g}, but a cluster of others knows only real time",
            where=Where(str(experiment.path), key=f"{where}.time_scale"),
            hint="run it with --time-scale 1: all durations as they are written",
        )
    if settings.world is not None and settings.world.planted_bugs:
        raise BadInput(
            f"nobody can plant {', '.join(settings.world.planted_bugs)} into a cluster of others",
            where=Where(str(experiment.path), key=f"{where}.world.planted_bugs"),
            hint="planted bugs are for --target embedded and controlplane",
        )
    url = foreign.url or ("" if settings.workload.url == "auto" else settings.workload.url)
    if not url:
        raise BadInput(
            "nobody says where the load is to be sent", where=Where(str(experiment.path), key=f"{where}.workload.url"),
            hint="--url http://HOST:PORT of the gateway, or workload.url in the experiment",
        )  # fmt: skip
    if not url.startswith(("http://", "https://")):
        raise BadInput(f"{url!r} is not a service URL", where=Where("--url"), hint="write http://host:port")
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise BadInput(
            "a password in a URL is a password in a report", where=Where("--url"),
            hint="name its environment variable in the experiment: workload.api_key_env",
        )  # fmt: skip
    return url


def survey(experiment: Experiment, foreign: Foreign) -> Survey:
    """Raises BadInput, GuardRefused where the workload's namespace is closed to faults or has no such pods, and
    TargetError where the cluster does not answer."""
    url = check_experiment(experiment, foreign)
    namespace = experiment.settings.workload.namespace
    check_system_namespace("this run", namespace)
    connection = Connection(
        target=KUBECONFIG,
        kubeconfig=foreign.kubeconfig.absolute(),  # what it names by relative paths lies beside it, not beside a link
        context=foreign.context,
        service_url=url,
        control_url=None,
        namespace=namespace,
        time_scale=1.0,
        undo_in_cluster=True,
    )
    return asyncio.run(_survey(connection, experiment))


async def _survey(connection: Connection, experiment: Experiment) -> Survey:
    workload, what = experiment.settings.workload, f"the cluster of {connection.kubeconfig}"
    async with connection.kube() as kube:
        try:
            version = str((await kube.raw("/version")).get("gitVersion", "unknown"))
            fingerprint = await kube.fingerprint()
            check_namespace("this run", await kube.get(NAMESPACE, workload.namespace))
            pods = (await kube.list(POD, workload.namespace, label_selector=workload.selector)).items
            fleet = await read_fleet(kube)
            pools = await _pools(kube)
            await check_installed(kube, experiment.settings.stack)
        except NotFound as error:
            raise GuardRefused(
                f"{what}: {error.message}", hint="is it the right context, and the namespace?"
            ) from error
        except ApiError as error:
            raise GuardRefused(
                f"{what} does not let itself be read: {error}",
                hint=f"gpu-harness rbac {experiment.path} prints the role that a run needs",
            ) from error
        except ConnectionError as error:
            raise TargetError(f"{what} does not answer: {error}") from error
    if not pods:
        raise GuardRefused(
            f"there is no pod of {workload.selector} in namespace {workload.namespace}",
            hint="the workload is yours to bring on this target; check workload.selector",
        )
    return Survey(replace(connection, fingerprint=fingerprint), fleet, pools, version)


async def _pools(kube: HttpKube) -> tuple[str, ...]:
    """Of Karpenter; none where it is not installed, or not ours to read: then no fault picks pools either."""
    try:
        return tuple(pool["metadata"]["name"] for pool in (await kube.list(NODE_POOL)).items)
    except ApiError:
        return ()
