"""Seeded and pure: from experiment, load profile and seed to a schedule and fault targets."""

from harness.plan.plan import Plan as Plan
from harness.plan.plan import PlannedFault as PlannedFault
from harness.plan.plan import plan_experiment as plan_experiment
from harness.plan.plan import plan_profile as plan_profile
from harness.plan.schedule import Schedule as Schedule
from harness.plan.trace import TraceCut as TraceCut
