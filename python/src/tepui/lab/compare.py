"""Means with intervals, and comparisons of two policies on the same seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Quantiles of Student's t at 97.5 %, for 1 to 30 degrees of freedom.
_T = (
    (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
    + (2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086)
    + (2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042)
)


@dataclass(frozen=True)
class Spread:
    """A mean and half the width of its 95 % interval."""

    mean: float
    half: float

    def __str__(self) -> str:
        """Return mean and half interval, such as ``98.20 ± 1.31``."""
        return f"{self.mean:.2f} ± {self.half:.2f}"


def spread(values: Sequence[float]) -> Spread:
    """Return the mean of some values with its 95 % interval, by Student's t."""
    if not len(values):
        raise ValueError("no values: a mean needs one at least")
    if len(values) == 1:
        return Spread(float(values[0]), math.inf)
    t = _T[min(len(values) - 1, len(_T)) - 1]
    half = t * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return Spread(float(np.mean(values)), half)


def paired(ones: Sequence[float], others: Sequence[float]) -> Spread:
    """Return the mean difference ``ones - others`` of values of the same seeds, in the same order.

    With common random numbers most of the differences between seeds cancel out, so the interval is narrower than that
    of either mean.
    """
    if len(ones) != len(others):
        raise ValueError(f"{len(ones)} values and {len(others)}: each needs its partner of the same seed")
    return spread([one - other for one, other in zip(ones, others, strict=True)])
