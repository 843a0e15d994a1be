"""Measures decisions per second of :class:`tepui.lab.DagScheduling`, one environment and a batch, from Python.

    taskset -c 0 python -m tepui.lab.examples.speed

pins the program and Python to the same core. The policy is the first stage that can run, with all executors. In the
last line it is the policy of the example, in NumPy. CPU seconds are those of Linux's /proc.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tepui.lab

from .policy import decide, start

STEPS = 10_000
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_of(process: int) -> float:
    """Return the CPU seconds that a process has used."""
    with open(f"/proc/{process}/stat") as file:
        # The name is in parentheses and may contain spaces.
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def measure(title: str, decisions: int, program: int, run: Callable[[], None]) -> None:
    """Call *run* and print the cost of a decision."""
    wall, own, other = time.perf_counter(), time.process_time(), cpu_of(program)
    run()
    wall, own, other = time.perf_counter() - wall, time.process_time() - own, cpu_of(program) - other
    each = 1e6 / decisions
    print(
        f"{title:<34} {decisions / wall:>8.0f} decisions/s   CPU for each: {own * each:5.1f} us here, "
        f"{other * each:5.1f} us in the program"
    )


def single() -> None:
    """Measure one environment."""
    env = tepui.lab.DagScheduling(jobs=20)
    observation, _ = env.reset(seed=1)

    def run() -> None:
        nonlocal observation
        for _ in range(STEPS):
            action = [int(observation["action_mask"].argmax()), 49]
            observation, _, terminated, _, _ = env.step(action)
            if terminated:
                observation, _ = env.reset()

    measure("one environment", STEPS, env.process_id, run)
    env.close()


def batch(title: str, choose: Callable[[dict[str, Any]], Any]) -> None:
    """Measure 16 environments on one thread."""
    envs = tepui.lab.vector("DagScheduling", 16, jobs=20)
    observations, _ = envs.reset(seed=1)

    def run() -> None:
        nonlocal observations
        for _ in range(STEPS // 4):
            observations, *_ = envs.step(choose(observations))

    measure(title, STEPS // 4 * 16, envs.process_id, run)
    envs.close()


def main() -> None:
    """Run all measurements."""
    limits, weights = np.full(16, 49), np.tile(start(), (16, 1))
    single()
    batch("16 environments", lambda seen: np.stack([seen["action_mask"].argmax(axis=1), limits], axis=1))
    batch("16 environments, policy in NumPy", lambda seen: decide(seen, weights))


if __name__ == "__main__":
    main()
