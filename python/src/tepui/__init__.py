"""Schedulers and operator calls for tepui and Apache Mesos, over the v1 HTTP APIs with JSON."""

from .errors import CallError, ClosedSession, NoLeader, TepuiError
from .operator import Operator
from .resources import ports, scalar, scalar_sum
from .scheduler import Scheduler
from .training import Training

__all__ = [
    "CallError",
    "ClosedSession",
    "NoLeader",
    "Operator",
    "Scheduler",
    "TepuiError",
    "Training",
    "ports",
    "scalar",
    "scalar_sum",
]
