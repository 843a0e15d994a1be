"""A policy with 12 weights for :class:`tepui.lab.DagScheduling`, for many environments, each with its own weights.

An exponential of some features is the number of executors of each job. A score of other features selects the stage,
among the jobs that have fewer executors. When all jobs have their number, the stage with the highest score gets the
rest. All weights have a meaning, so the trained ones can be interpreted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tepui.lab import LabVectorEnv

Weights = npt.NDArray[np.float64]
Array = npt.NDArray[Any]

STAGE = ("local", "log work of the job", "log path of the job", "held", "log tasks", "log duration", "log path work")
LIMIT = ("constant", "log jobs", "log work to the mean", "log path of the job", "local")
NAMES = tuple(f"stage: {name}" for name in STAGE) + tuple(f"limit: {name}" for name in LIMIT)


def start() -> Weights:
    """Return the initial weights: the first stage that can run, and half of the executors for its job."""
    weights = np.zeros(len(NAMES))
    weights[len(STAGE)] = np.log(0.5)
    return weights


def decide(observations: dict[str, Array], weights: Weights) -> Array:
    """Return the actions of all environments; row n of *weights* decides in environment n."""
    jobs, cluster = observations["jobs"], observations["global"]
    executors = np.maximum(cluster[:, 1:2], 1.0)
    # Work is in 10^6 task-milliseconds, paths in 10^5 milliseconds, what is held in units of 20 executors.
    work, path = np.log(jobs[:, :, 3] + 1e-3), np.log(jobs[:, :, 4] + 1e-3)
    held, local = jobs[:, :, 0] * 20.0, jobs[:, :, 1] > 0
    alive = jobs[:, :, 3] > 0
    mean = (work * alive).sum(axis=1, keepdims=True) / np.maximum(alive.sum(axis=1, keepdims=True), 1)
    limit_weights = weights[:, len(STAGE) :, None]
    part = limit_weights[:, 0] + limit_weights[:, 1] * np.log(np.maximum(cluster[:, 2:3], 1.0))
    part = part + limit_weights[:, 2] * (work - mean) + limit_weights[:, 3] * path + limit_weights[:, 4] * local
    limits = np.maximum(np.rint(np.exp(np.clip(part, -20.0, 0.0)) * executors), 1.0)

    used = max(int(observations["node_mask"].sum(axis=1).max()), 1)
    nodes = observations["nodes"][:, :used]
    of_job = np.maximum(observations["node_job"][:, :used], 0).astype(np.intp)
    stage = weights[:, : len(STAGE), None]
    # The part of the score that all stages of a job share. Jobs that have their number of executors come last.
    of_jobs = stage[:, 0] * local + stage[:, 1] * work + stage[:, 2] * path + stage[:, 3] * held / executors
    of_jobs = of_jobs - 1e6 * (held + 0.5 > limits)
    scores = np.take_along_axis(of_jobs, of_job, axis=1) + stage[:, 4] * np.log1p(nodes[:, :, 4] * 200.0)
    scores += stage[:, 5] * np.log(nodes[:, :, 6] + 1e-2) + stage[:, 6] * np.log(nodes[:, :, 7] + 1e-3)
    scores = np.where(observations["action_mask"][:, :used] > 0, scores, -np.inf)
    chosen = scores.argmax(axis=1)

    rows = np.arange(len(chosen))
    job = of_job[rows, chosen]
    limit = limits[rows, job]
    limit = np.where(held[rows, job] + 0.5 > limit, executors[:, 0], limit)
    return np.stack([chosen, np.clip(limit, 1, executors[:, 0]).astype(np.int64) - 1], axis=1)


def play(envs: LabVectorEnv, weights: Weights, seeds: list[int]) -> tuple[npt.NDArray[np.float64], int]:
    """Play an episode in each environment.

    Returns the mean completion times in seconds, and the number of all decisions.
    """
    observations, _ = envs.reset(seed=seeds)
    times = np.full(envs.num_envs, np.nan)
    decisions = 0
    while np.isnan(times).any():
        observations, _, terminated, truncated, info = envs.step(decide(observations, weights))
        decisions += envs.num_envs
        # An environment whose episode has ended continues with another one, which is ignored.
        ended = (terminated | truncated) & np.isnan(times)
        times[ended] = info["mean_completion"][ended]
    return times, decisions
