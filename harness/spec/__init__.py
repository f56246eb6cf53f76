"""Strict models of the files people write."""

from harness.spec.actions import ACTIONS as ACTIONS
from harness.spec.checks import CHECK_SPECS as CHECK_SPECS
from harness.spec.experiment import Experiment as Experiment
from harness.spec.experiment import PlannedAction as PlannedAction
from harness.spec.experiment import load_experiment as load_experiment
from harness.spec.loadprofile import LoadProfile as LoadProfile
from harness.spec.loadprofile import load_profile as load_profile
from harness.spec.settings import HarnessSettings as HarnessSettings
from harness.spec.together import check_together as check_together
