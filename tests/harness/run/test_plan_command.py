"""``gpu-harness plan`` of an experiment or of a load profile alone, drawn or not."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from harness.commands import run_command_line
from harness.errors import BadInput, ExitCode
from harness.plan.schedule import Schedule

ROOT = Path(__file__).resolve().parents[3]
PROFILE = str(ROOT / "loadprofiles" / "flash-crowd.yaml")
EXPERIMENT = str(ROOT / "experiments" / "spot-interruption-during-burst.yaml")


def test_a_profile_alone(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    assert run_command_line(["plan", PROFILE, "--time-scale", "15", "--plot", str(page)]) is ExitCode.PASS
    said = capsys.readouterr()
    assert "900 scenario s in 60 clock s (time_scale 15)" in said.out
    assert said.err == f"drawn: {page}\n"
    assert "Plotly.newPlot" in page.read_text()


def test_its_json_is_the_same_for_the_same_seed(capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for seed in ("3", "3", "4"):
        run_command_line(["plan", PROFILE, "--time-scale", "30", "--seed", seed, "--json"])
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] != said[2]
    assert json.loads(said[0])["faults"] == []


def test_an_experiment_has_its_own_time_scale(tmp_path: Path) -> None:
    assert run_command_line(["plan", EXPERIMENT, "--plot", str(tmp_path / "p.html")]) is ExitCode.PASS
    assert "spot_interruption-1" in (tmp_path / "p.html").read_text()
    with pytest.raises(BadInput, match="--time-scale is for a load profile alone"):
        run_command_line(["plan", EXPERIMENT, "--time-scale", "2"])


def test_a_trace_in_a_loop_at_another_rate(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    rows = "".join(f"{i},GPT-4,{i + 1},5,9,API log\n" for i in range(100))
    trace.write_text("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n" + rows)
    replay = ["--trace", str(trace), "--speed", "10", "--loop", "--scale", "2"]
    assert run_command_line(["plan", PROFILE, "--time-scale", "15", *replay]) is ExitCode.PASS
    said = capsys.readouterr().out
    assert "t.csv, trace seconds 0 to 99 at speed 10, 2 times its rate, 6.1 rounds in a loop" in said
    assert "900 scenario s in 60 clock s" in said
    requests = re.search(r"(\d+) requests", said)
    assert requests is not None and int(requests[1]) == pytest.approx(1200, rel=0.01)


@pytest.mark.parametrize("flag", [("--scale", "2"), ("--loop",), ("--speed", "3")])
def test_flags_of_a_trace_need_one(flag: tuple[str, ...]) -> None:
    with pytest.raises(BadInput, match="need --trace"):
        run_command_line(["plan", PROFILE, *flag])


def test_a_profile_alone_can_be_validated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["validate", PROFILE]) is ExitCode.PASS
    assert "valid (a load profile of" in capsys.readouterr().out
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(Path(PROFILE).read_text().replace("duration_s:", "duration:"))
    with pytest.raises(BadInput, match="'duration' is not known"):
        run_command_line(["validate", str(wrong)])


def test_a_profile_is_no_experiment() -> None:
    with pytest.raises(BadInput, match="is a load profile, not an experiment") as caught:
        run_command_line(["run", PROFILE, "--virtual"])
    assert "name it under `load:`" in (caught.value.hint or "")


def test_a_stream_longer_than_the_deadline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a time_scale nobody can say that it is wrong; with one that is too small it is refused."""
    slow = tmp_path / "slow.yaml"
    slow.write_text(
        "title: t\nduration_s: 30\nlongest_stream_s: 100\narrivals: {kind: constant, rate_per_s: 1}\n"
        "tokens: {prompt: {kind: fixed, tokens: 9}, output: {kind: fixed, tokens: 9}}\n"
    )
    for command in ("plan", "validate"):
        run_command_line([command, str(slow)])
        assert "an experiment needs a time_scale of at least 2.5" in capsys.readouterr().out
    assert run_command_line(["plan", str(slow), "--time-scale", "2.5"]) is ExitCode.PASS
    with pytest.raises(BadInput, match="the longest stream takes 50 clock seconds") as caught:
        run_command_line(["plan", str(slow), "--time-scale", "2"])
    assert caught.value.where is not None and caught.value.where.line == 3


def test_a_name_is_near_by_its_stem(tmp_path: Path) -> None:
    for name in ("badu.yaml", "load.json", "load.yaml"):
        (tmp_path / name).write_text("")
    for asked, near in (("nosuch.yaml", "looked in"), ("lod.yaml", "load.yaml"), ("load.yml", "load.yaml")):
        with pytest.raises(BadInput, match="there is no such file") as caught:
            run_command_line(["plan", str(tmp_path / asked)])
        assert near in (caught.value.hint or "")


def test_the_rows_themselves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rows.parquet"
    assert run_command_line(["plan", PROFILE, "--time-scale", "15", "--schedule", str(file)]) is ExitCode.PASS
    said = capsys.readouterr()
    written = Schedule.read(file)
    assert f"{len(written)} requests" in said.out and written.sha256() in said.out
    assert said.err == f"written: {file}\n"
    for bad, says in ((tmp_path / "rows.csv", "Parquet only"), (tmp_path / "gone" / "r.parquet", "cannot be written")):
        with pytest.raises(BadInput, match=says):
            run_command_line(["plan", PROFILE, "--time-scale", "15", "--schedule", str(bad)])
