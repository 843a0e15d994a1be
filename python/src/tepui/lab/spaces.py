"""Spaces of Gymnasium from the program's description of its environments, and arrays from its answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from .program import Buffer

Array = npt.NDArray[Any]
Observation = dict[str, Array]


def observation_space(form: dict[str, Any]) -> spaces.Space[Observation]:
    """Return the space of observations: a box for each array."""

    def box(field: dict[str, Any]) -> spaces.Box:
        low = -math.inf if field["low"] is None else field["low"]
        high = math.inf if field["high"] is None else field["high"]
        return spaces.Box(low, high, tuple(field["shape"]), np.dtype(field["kind"]).type)

    boxes: spaces.Space[Any] = spaces.Dict({field["name"]: box(field) for field in form["observation"]})
    return boxes


def action_space(form: dict[str, Any]) -> spaces.Space[Any]:
    """Return the space of actions: one whole number, several of them, or numbers within bounds."""
    action = form["action"]
    if "choices" in action:
        counts = action["choices"]
        return spaces.Discrete(counts[0]) if len(counts) == 1 else spaces.MultiDiscrete(counts)
    bounds = np.array(action["amounts"], np.float32)
    return spaces.Box(bounds[:, 0], bounds[:, 1], dtype=np.float32)


def pack(form: dict[str, Any], actions: Any, count: int) -> bytes:
    """Return the bytes of actions: 32 bits for each number. The program checks that they are within the bounds."""
    action = form["action"]
    numbers = len(action.get("choices") or action["amounts"])
    given = np.asarray(actions)
    if given.size != numbers * count:
        raise ValueError(f"expected {count} actions of {numbers} numbers, not an array of the shape {given.shape}")
    if given.dtype.kind not in "biuf":
        raise ValueError(f"invalid actions {actions!r:.100}: must be numbers of 32 bits")
    if "choices" not in action:
        return given.astype("<f4").tobytes()
    with np.errstate(invalid="ignore"):
        cells = given.astype("<i4")
    # The conversion cuts fractions, and wraps larger numbers to others that may be valid.
    changed = np.flatnonzero(cells != given)
    if changed.size:
        environment, item = divmod(int(changed[0]), numbers)
        number = given.ravel()[changed[0]]
        rule = "must be a whole number of 32 bits"
        raise ValueError(f"invalid action {item} of environment {environment}: {number} {rule}")
    return cells.tobytes()


@dataclass(frozen=True)
class Results:
    """The results of a reset or a step of all environments."""

    observations: Observation
    rewards: npt.NDArray[np.float64]
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    seeds: npt.NDArray[np.uint64]
    info: npt.NDArray[np.float64]


class Reader:
    """Splits answers into arrays without copying."""

    def __init__(self, form: dict[str, Any], count: int) -> None:
        """Make a reader of answers of this form for *count* environments."""
        self._count = count
        self._measured = len(form["info"])
        self._fields: list[tuple[str, np.dtype[Any], tuple[int, ...]]] = [
            (field["name"], np.dtype(field["kind"]), (count, *field["shape"])) for field in form["observation"]
        ]

    def read(self, answer: Buffer) -> Results:
        """Return the arrays of an answer."""
        count, at = self._count, 0

        def part(kind: np.dtype[Any], shape: tuple[int, ...]) -> Array:
            nonlocal at
            begin, at = at, at + kind.itemsize * math.prod(shape)
            return answer[begin:at].view(kind).reshape(shape)

        rewards = part(np.dtype("<f8"), (count,))
        seeds = part(np.dtype("<u8"), (count,))
        info = part(np.dtype("<f8"), (count, self._measured))
        observations = {name: part(kind, shape) for name, kind, shape in self._fields}
        terminated, truncated = part(np.dtype(np.bool_), (count,)), part(np.dtype(np.bool_), (count,))
        return Results(observations, rewards, terminated, truncated, seeds, info)
