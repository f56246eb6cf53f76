from __future__ import annotations

from cases import HERE, ask, load

from harness.checks import causes
from harness.checks.root_cause import by_rank, one_line, ranked, root_cause, story_parts
from harness.checks.story import NOT_TOLD, tell
from harness.verdict import Finding, Role, Status, Verdict, merge


def fail(check: str, at_s: float | None = None, cause: str = "", *objects: str) -> Finding:
    when = f"at {at_s} s of the load, 2.0 s after spot_interruption-1 struck" if at_s is not None else ""
    story = tell(promised="p", happened=f"{check} broke", when=when, objects=objects, cause=cause, change="c")
    return Finding(check, Role.CHECK, Status.FAIL, f"{check} failed", 1, story=story)


def verdict(*findings: Finding) -> Verdict:
    return merge(findings)


def test_the_earliest_cause_that_is_told_comes_first_and_effects_last() -> None:
    slo = fail("slo", 5, "of 9 late, 9 ended as reset", "llm-b")
    late, early = fail("gang", 300, "its members were bound one by one"), fail("controllers", 90, "two write it")
    untold = fail("metrics_path", 1)
    groups = ranked(verdict(slo, untold, late, early))
    assert [group.first.finding.check for group in groups] == ["controllers", "gang", "metrics_path", "slo"]
    assert root_cause(groups) == (
        "root cause, as far as the history supports it: whoever writes the size: autoscalers and other controllers: "
        "two write it (from 90.0 s of the load); 1 more that nothing recorded connects with it"
    )


def test_fails_about_the_same_objects_stand_together() -> None:
    drain = fail("graceful_drain", 320, f"{causes.SIGTERM}, 5.0 s after llm-a was asked to go", "llm-a", "spot-1")
    slo, gang = fail("slo", 310, "of 9 late, 9 ended as aborted", "llm-a"), fail("gang", 400, "a member was lost", "g")
    groups = ranked(verdict(slo, gang, drain))
    assert [[told.finding.check for told in group.told] for group in groups] == [["graceful_drain", "slo"], ["gang"]]
    assert groups[0].first.component == "the model server"
    away = fail("scale_down", 500, f"{causes.GRACE_END}, 30.0 s after llm-z was asked to go", "llm-z")
    assert ranked(verdict(away))[0].first.component == "the pod's grace period"
    assert [f.check for f in by_rank(verdict(slo, gang, drain))] == ["graceful_drain", "slo", "gang"]


def test_what_the_history_does_not_tell_is_not_told() -> None:
    groups = ranked(verdict(fail("metrics_path", 162)))
    assert root_cause(groups).startswith("root cause: the history cannot tell; what is seen is that metrics_path broke")
    assert "it concerns the metrics path" in root_cause(groups)
    unexplained = fail("graceful_drain", 1, f"{causes.UNEXPLAINED}: nothing was seen")
    assert "cannot tell" in root_cause(ranked(verdict(unexplained)))
    assert "cannot tell" in root_cause(ranked(verdict(fail("slo", 1, "of 9 late, 9 ended as reset"))))
    assert NOT_TOLD in groups[0].first.line


def test_a_fail_that_does_not_count_is_not_ranked() -> None:
    broken = Finding("load_offered", Role.VALIDITY, Status.FAIL, "late", 1)
    needy = Finding("slo", Role.CHECK, Status.FAIL, "late", 1, needs=("load_offered",))
    assert ranked(verdict(needy, broken)) == []
    assert root_cause([]) == ""


def test_one_line_is_the_cause_or_the_sentence() -> None:
    assert one_line(fail("gang", 1, "its members were bound one by one")) == (
        "the scheduler: its members were bound one by one"
    )
    assert one_line(fail("gang", 1)) == "gang failed"
    assert one_line(Finding("pdb", Role.CHECK, Status.UNKNOWN, "no budget", 0)) == "no budget"


def test_the_parts_of_a_story_are_read_back() -> None:
    story = tell(promised="a. b", happened="h", when="at 1.5 s of the load", objects=["x", "y"], cause="c", change="d")
    found = story_parts(story)
    assert found["Promised:"] == "a. b" and found["Objects:"] == "x and y" and found["What to change:"] == "d"
    assert story_parts("") == {}


def test_the_cause_of_each_kept_fail_with_a_cause_has_a_component() -> None:
    for file in sorted(HERE.glob("graceful_drain/bad-*.py")):
        finding = ask("graceful_drain", load(file))
        told = ranked(verdict(finding))[0].first
        assert told.component or not told.cause, (file.name, told.cause)
