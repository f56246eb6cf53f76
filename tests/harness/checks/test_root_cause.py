from __future__ import annotations

from dataclasses import replace

from harness.checks.root_cause import by_rank, one_line, ranked, root_cause
from harness.checks.story import NOT_TOLD, retold, story_parts, tell
from harness.verdict import Diagnosis, Finding, Role, Status, Verdict, merge, with_causes


def fail(check: str, cause: str = "", change: str = "") -> Finding:
    story = tell(promised="p", happened=f"{check} broke", cause=cause, change=change)
    return Finding(check, Role.CHECK, Status.FAIL, f"{check} failed", 1, story=story)


GATEWAY = Diagnosis(
    "the gateway", "sent 3 requests too late", 5, "from 5.0 s of the load", explains=("graceful_drain",)
)
CLOUD = Diagnosis("the cloud", "took a node", 9, "from 9.0 s of the load", explains=("slo", "recovery"))


def verdict(*findings: Finding, causes: tuple[Diagnosis, ...] = ()) -> Verdict:
    return with_causes(merge(findings), causes)


def test_fails_stand_behind_the_cause_that_explains_them() -> None:
    judged = verdict(fail("slo"), fail("gang"), fail("graceful_drain"), fail("recovery"), causes=(GATEWAY, CLOUD))
    groups = ranked(judged)
    assert [[f.check for f in group.findings] for group in groups] == [
        ["graceful_drain"],
        ["slo", "recovery"],
        ["gang"],
    ]
    assert [f.check for f in by_rank(judged)] == ["graceful_drain", "slo", "recovery", "gang"]
    assert root_cause(judged) == (
        "root cause: the gateway sent 3 requests too late (from 5.0 s of the load); "
        "1 more that nothing recorded connects with it"
    )


def test_the_sentence_of_a_fail_leads_with_its_root_cause() -> None:
    judged = verdict(fail("slo"), fail("graceful_drain"), causes=(GATEWAY, CLOUD))
    assert judged.sentence == f"{GATEWAY.sentence}. slo, graceful_drain failed"
    scoped = replace(GATEWAY, scope="hit: all 3 pods", inferred=True)
    assert scoped.sentence.endswith("(from 5.0 s of the load) (inferred); hit: all 3 pods")


def test_what_the_history_does_not_tell_is_not_told() -> None:
    untold = verdict(fail("slo"), fail("gang"))
    assert [group.cause for group in ranked(untold)] == [None, None]
    assert root_cause(untold) == "root cause: not told by the history; what is seen is that gang broke"
    assert root_cause(merge([])) == ""


def test_a_fail_that_does_not_count_is_not_ranked_and_leads_no_verdict() -> None:
    broken = Finding("load_offered", Role.VALIDITY, Status.FAIL, "late", 1)
    needy = Finding("slo", Role.CHECK, Status.FAIL, "late", 1, needs=("load_offered",))
    judged = verdict(needy, broken, causes=(CLOUD,))
    assert ranked(judged) == []
    assert judged.status is Status.UNKNOWN
    assert judged.sentence.startswith("load_offered") and judged.causes == (CLOUD,)


def test_one_line_is_the_cause_or_the_sentence() -> None:
    judged = verdict(fail("gang", "its members were bound one by one"), fail("slo"), causes=(CLOUD,))
    assert one_line(judged, judged.findings[0]) == "its members were bound one by one"
    assert one_line(judged, judged.findings[1]) == CLOUD.sentence
    assert one_line(judged, fail("pdb")) == "pdb failed"
    assert one_line(judged, Finding("pdb", Role.CHECK, Status.UNKNOWN, "no budget", 0)) == "no budget"


def test_the_parts_of_a_story_are_read_back() -> None:
    story = tell(promised="a. b", happened="h", when="at 1.5 s of the load", objects=["x", "y"], cause="c", change="d")
    found = story_parts(story)
    assert found["Promised:"] == "a. b" and found["Objects:"] == "x and y" and found["What to change:"] == "d"
    assert story_parts("") == {}


def test_a_story_is_retold_with_the_cause_of_the_whole_run() -> None:
    story = tell(promised="p", happened="h", cause="its own guess", change="its own advice")
    told = story_parts(retold(story, GATEWAY.sentence, ""))
    seen = "h; seen by this check: its own guess"
    assert told == {"Promised:": "p", "What happened:": seen, "First cause:": GATEWAY.sentence}
    untold = story_parts(retold(tell(promised="p", happened="h"), GATEWAY.sentence, "c"))
    assert untold["What happened:"] == "h" and untold["What to change:"] == "c"
    assert story_parts(tell(promised="p", happened="h"))["First cause:"] == NOT_TOLD


def test_a_run_that_was_not_steady_says_so_first() -> None:
    names = ("faults_observed", "steady_before")
    broken = [Finding(name, Role.VALIDITY, Status.FAIL, f"{name} broke", 1) for name in names]
    assert merge([*broken, Finding("slo", Role.CHECK, Status.PASS, "fine", 1)]).sentence.startswith("steady_before")
