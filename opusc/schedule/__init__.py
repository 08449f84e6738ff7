"""What a plan loses to switching: the operations of an iteration, their times, and when circuits change.

plan --workload_of--> operations --lower--> durations --simulate--> iteration, changes, timeline
"""

from opusc.schedule.operations import Workload, lower
from opusc.schedule.policy import ALL_LINKS, ON_DEMAND, PROVISIONED, Policy
from opusc.schedule.simulation import Result, simulate
from opusc.schedule.timing import Accelerator, Rates

__all__ = [
    "ALL_LINKS",
    "ON_DEMAND",
    "PROVISIONED",
    "Accelerator",
    "Policy",
    "Rates",
    "Result",
    "Workload",
    "lower",
    "simulate",
]
