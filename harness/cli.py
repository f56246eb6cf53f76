"""The command's entry: one of five exit codes, whatever happens (design, §4.5).

Kept light: the commands themselves are imported only after the handlers for Ctrl-C and SIGTERM are in place.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from types import FrameType
from typing import NoReturn

from harness.errors import ExitCode, HarnessError


class Interrupted(BaseException):
    """SIGINT or SIGTERM while no run has handlers of its own. (Typer turns a KeyboardInterrupt into an exit code.)"""


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise Interrupted


def main() -> NoReturn:
    """Runs the command line and exits. Never a traceback but for a defect of ours, which exits 70."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    sys.exit(int(_main(sys.argv[1:])))


def _main(args: list[str]) -> ExitCode:
    try:
        from harness.commands import run_command_line

        return run_command_line(args)
    except HarnessError as error:
        _complain(str(error))
        return error.exit_code
    except Interrupted:
        _complain("interrupted before anything was judged: the answer is unknown")
        return ExitCode.UNKNOWN
    except BrokenPipeError:
        # Whoever read our output has gone; what follows must not fail on the same pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.HARNESS_ERROR
    except Exception:
        traceback.print_exc()
        _complain("this is a defect of gpu-harness; the lines above say where")
        return ExitCode.HARNESS_ERROR


def _complain(text: str) -> None:
    sys.stderr.write(f"gpu-harness: {text}\n")


if __name__ == "__main__":
    main()
