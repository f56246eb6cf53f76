"""The command's entry: one of five exit codes, whatever happens (design, §4.5).

Kept light: the commands themselves are imported only after the handlers for Ctrl-C and SIGTERM are in place.
"""

from __future__ import annotations

import signal
import sys
import traceback
from types import FrameType
from typing import NoReturn

from harness.errors import ExitCode, HarnessError
from harness.output import keep_output
from harness.printable import block
from harness.signals import stop_signals

LONGEST_COMPLAINT = 20_000
"""Characters. Up to twenty mistakes of one file are told at once."""


class Interrupted(BaseException):
    """SIGINT, SIGTERM or SIGHUP while no run has handlers of its own. (Typer turns a KeyboardInterrupt into an
    exit code.)"""


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    _deaf()  # A second one must not break off what the first one cleans up.
    raise Interrupted


def _deaf() -> None:
    """Python gives all handlers back when it ends, before its modules go: a signal would kill then, and the exit code
    be none of ours. Only what is ignored stays ignored."""
    for number in stop_signals():
        signal.signal(number, signal.SIG_IGN)


def main() -> NoReturn:
    """Runs the command line and exits. Never a traceback but for a defect of ours, which exits 70."""
    for number in stop_signals():
        signal.signal(number, _interrupt)
    output = keep_output()
    try:
        code = _main(sys.argv[1:])
        _deaf()
    except Interrupted:
        _complain("interrupted: the command did not come to its end, and nothing was judged (exit 2)")
        code = ExitCode.UNKNOWN
    if (lost := output.lost()) is not None:
        _complain(f"not all of the output could be written: {lost}")
        code = ExitCode.HARNESS_ERROR if code is ExitCode.PASS else code
    sys.exit(int(code))


def _main(args: list[str]) -> ExitCode:
    try:
        from harness.commands import run_command_line

        return run_command_line(args)
    except HarnessError as error:
        _complain(str(error))
        return error.exit_code
    except OSError as error:
        # The machine refuses (disk full, no such device, no more files): not our defect, so no traceback.
        place = f"{error.filename}: " if error.filename else ""
        _complain(f"{place}the machine refused: {error.strerror or error}")
        return ExitCode.HARNESS_ERROR
    except Exception:
        traceback.print_exc()
        _complain("this is a defect of gpu-harness; the lines above say where")
        return ExitCode.HARNESS_ERROR


def _complain(text: str) -> None:
    """It may quote a file or a cluster, which must not turn a terminal upside down."""
    sys.stderr.write(f"gpu-harness: {block(text, LONGEST_COMPLAINT)}\n")


if __name__ == "__main__":
    main()
