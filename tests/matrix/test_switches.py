"""Every switch of trouble of the fake model server and of the gateway has a row of the matrix that uses it, and a check
that must find it: a switch that nobody uses is one of which nobody knows whether it works."""

from __future__ import annotations

import re
from dataclasses import fields
from random import Random

from matrix_row import ROOT
from matrix_rows import ROWS

from fakes.config import PlantedBug
from fakes.vllm.__main__ import TROUBLE, mischief_of, parser
from fakes.vllm.mischief import Mischief

CELLS = re.compile(r"`([^`]+)`")
BY_BUG = {row.bugs[0]: row for row in ROWS if row.bugs}
NODES_OWN = {PlantedBug.MODEL_LOADS_SLOWLY: "--model-load-s"}
"""How long it loads is no mischief, but a time that the server is told."""


def switches() -> list[str]:
    group = next(g for g in parser()._action_groups if g.title == TROUBLE)
    return [action.option_strings[0] for action in group._group_actions]


def table(heading: str) -> list[list[list[str]]]:
    """The names in each cell, row by row, of the first table below a heading of docs/vllm.md."""
    text = (ROOT / "docs/vllm.md").read_text().partition(f"\n## {heading}\n")[2]
    lines = [line for line in text.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    return [[CELLS.findall(cell) for cell in line.strip("|").split("|")] for line in lines]


def test_the_docs_say_of_every_switch_what_it_is_called_in_a_cluster_and_which_check_finds_it() -> None:
    rows = table("Trouble on purpose")
    told = [name.split()[0] for (names, *_) in rows for name in names]
    assert sorted(told) == sorted([*switches(), *NODES_OWN.values()])
    for names, _, bugs, check in rows:
        assert len(bugs) == len(check) == 1, names
        assert BY_BUG[PlantedBug(bugs[0])].check == check[0], names


def test_each_planted_bug_of_the_server_turns_a_switch_and_each_switch_is_turned_by_one() -> None:
    well = Mischief.of((), {}, Random(1))
    turned = {}
    for bug in (b for b in PlantedBug if b.name.startswith(("SERVER_", "MODEL_"))):
        ill = Mischief.of((bug,), {}, Random(1))
        turned[bug] = {
            f.name for f in fields(Mischief) if f.name != "rng" and getattr(ill, f.name) != getattr(well, f.name)
        }
    assert {bug for bug, names in turned.items() if not names} == NODES_OWN.keys()
    assert set().union(*turned.values()) == {f.name for f in fields(Mischief)} - {"rng"}


def test_each_switch_of_the_command_line_is_one_of_a_planted_bug() -> None:
    well = mischief_of(parser().parse_args([]), Random(1))
    for switch in switches():
        action = next(a for a in parser()._actions if switch in a.option_strings)
        args = parser().parse_args([switch, *([] if action.nargs == 0 else ["1"])])
        ill = mischief_of(args, well.rng)  # type: ignore[arg-type]  # it was just given
        assert ill != well, f"{switch} changes nothing"


def test_the_docs_say_of_every_bug_of_the_gateway_which_check_finds_it() -> None:
    rows = table("The gateway's own trouble")
    assert {PlantedBug(bugs[0]) for bugs, *_ in rows} == {b for b in PlantedBug if b.name.startswith("GATEWAY_")}
    for (bug,), _, check in rows:
        assert BY_BUG[PlantedBug(bug)].check == check[0], bug
