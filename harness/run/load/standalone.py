"""Plain ``locust -f … --load-profile FILE --host URL --model NAME``: our schedule without our supervisor.

The folder that it leaves holds the schedule and the records; there is no cluster, no fault and no verdict in it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.clock import monotonic_ns
from harness.errors import BadInput
from harness.plan.plan import plan_profile
from harness.run.load.api import CHAT, COMPLETIONS, Api
from harness.run.load.limits import SendLimits
from harness.run.load.settings import LoadSettings, Share
from harness.spec.loadprofile import load_profile


def add_options(events: Any) -> None:
    """Options of ours on Locust's command line and, but for the key's name, on its web page."""

    def options(parser: Any) -> None:
        parser.add_argument(
            "--load-profile", default="", help="a load profile (see loadprofiles/)", env_var="GPU_HARNESS_PROFILE"
        )
        parser.add_argument("--seed", type=int, default=1, help="same profile and seed, same schedule")
        parser.add_argument("--model", default="", help="the model to ask for", env_var="GPU_HARNESS_MODEL")
        parser.add_argument("--api", choices=[CHAT, COMPLETIONS], default=CHAT, help="which OpenAI endpoint")
        parser.add_argument(
            "--api-key-env", default="", help="name of the environment variable that holds the API key",
            include_in_web_ui=False,
        )  # fmt: skip
        parser.add_argument(
            "--ca-file", default="", help="trust only these certificates (PEM)", include_in_web_ui=False
        )
        parser.add_argument("--time-scale", type=float, default=1.0, help="profile seconds per second on the clock")
        parser.add_argument("--records", default="reports/locust", help="folder for schedule and records")

    events.init_command_line_parser.add_listener(options)


def check(options: Any, host: str | None) -> None:
    """Raises BadInput for what could not be sent, before Locust starts."""
    if not options.load_profile:
        raise BadInput(
            "no load profile was named",
            hint="add --load-profile loadprofiles/chat.yaml; with faults and a verdict: `gpu-harness run EXPERIMENT`",
        )
    if not host:
        raise BadInput("no server was named", hint="add --host http://127.0.0.1:8000")
    if not options.model:
        raise BadInput("no model was named", hint="add --model NAME, as in the server's /v1/models")
    if options.time_scale <= 0:
        raise BadInput(f"--time-scale is {options.time_scale:g}, and must be above 0")
    load_profile(Path(options.load_profile))
    _api(options, host).all_headers()


def settings(options: Any, host: str | None, share: Share) -> LoadSettings:
    """Plans the schedule anew in each process: the same profile and seed give the same bytes."""
    check(options, host)
    profile = load_profile(Path(options.load_profile))
    plan = plan_profile(profile, options.seed, options.time_scale)
    folder = Path(options.records) / datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
    name = f"-{share.index}" if share.of > 1 else ""
    folder.mkdir(parents=True, exist_ok=True)
    plan.schedule.write(folder / f"schedule{name}.parquet")
    send = profile.send
    return LoadSettings(
        schedule=folder / f"schedule{name}.parquet",
        api=_api(options, host or ""),
        records=folder / f"records{name}.jsonl",
        start_ns=monotonic_ns(),
        send=SendLimits(send.connect_timeout_s, send.first_token_timeout_s, send.stall_timeout_s, send.deadline_s),
        seed=options.seed,
        retry_reset_reused=send.retry_reset_reused,
        share=share,
        start_at_once=True,
    )


def _api(options: Any, host: str) -> Api:
    return Api(
        host, options.model, options.api, key_env=options.api_key_env or None,
        ca_file=Path(options.ca_file) if options.ca_file else None,
    )  # fmt: skip
