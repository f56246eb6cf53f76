"""``python -m harness.stack build [NAME...]``: what ``make controlplane`` runs."""

from __future__ import annotations

import argparse
import sys

from harness.errors import HarnessError
from harness.stack.build import build
from harness.stack.cache import built_dir
from harness.stack.catalogue import COMPONENTS, CONTROL_PLANE, KUBECTL


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m harness.stack", description="Real components of a cluster.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    building = commands.add_parser("build", help="build programs from their Go modules into the user's cache")
    default = [component.name for component in (*CONTROL_PLANE, KUBECTL)]
    building.add_argument("names", nargs="*", default=default, metavar="NAME", help=f"of: {', '.join(COMPONENTS)}")
    names = parser.parse_args().names
    if unknown := [name for name in names if name not in COMPONENTS]:
        parser.error(f"no such component: {', '.join(unknown)}; there is: {', '.join(COMPONENTS)}")
    try:
        built = build([COMPONENTS[name] for name in names], lambda text: print(text, file=sys.stderr, flush=True))
    except HarnessError as error:
        print(f"gpu-harness: {error}", file=sys.stderr)
        return int(error.exit_code)
    for program in built:
        print(f"{program.path}  {program.size_mb:.0f} MB" + ("" if program.took_s else "  (was there)"))
    print(f"all of it is in {built_dir()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
