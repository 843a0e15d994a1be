"""A policy with 13 weights for :class:`tepui.lab.DagScheduling`, for many environments with weights of their own.

A score of a few features says which stage gets executors, and an exponential of a few others how many its job may have.
All weights have a meaning, so the trained ones can be read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tepui.lab import LabVectorEnv

Weights = npt.NDArray[np.float64]
Array = npt.NDArray[Any]

STAGE = ("local", "log work of the job", "log path of the job", "log tasks", "log duration", "log path work", "held")
LIMIT = ("constant", "log jobs", "log work of the job to the mean", "log tasks", "held", "local")
NAMES = tuple(f"stage: {name}" for name in STAGE) + tuple(f"limit: {name}" for name in LIMIT)


def start() -> Weights:
    """Return the weights to begin with: the first stage that can run, and half of the executors for its job."""
    weights = np.zeros(len(NAMES))
    weights[len(STAGE)] = np.log(0.5)
    return weights


def decide(observations: dict[str, Array], weights: Weights) -> Array:
    """Return the actions of all environments; row n of *weights* decides in environment n."""
    used = int(observations["node_mask"].sum(axis=1).max(initial=1))
    nodes = observations["nodes"][:, :used]
    of_job = np.maximum(observations["node_job"][:, :used], 0).astype(np.intp)
    jobs, cluster = observations["jobs"], observations["global"]
    executors = cluster[:, 1:2]
    # Features of jobs: what is held is in units of 20 executors, work in 10^6 task-milliseconds.
    held = jobs[:, :, 0] * 20.0 / executors
    work = np.log(jobs[:, :, 3] + 1e-3)
    path = np.log(jobs[:, :, 4] + 1e-3)
    local = (jobs[:, :, 1] > 0).astype(np.float32)

    def at_nodes(values: Array) -> Array:
        return np.take_along_axis(values, of_job, axis=1)

    stage = weights[:, : len(STAGE), None]
    # What is the same for all stages of a job is weighed once for the job.
    of_jobs = stage[:, 0] * local + stage[:, 1] * work + stage[:, 2] * path + stage[:, 6] * held
    tasks = np.log1p(nodes[:, :, 4] * 200.0)
    scores = at_nodes(of_jobs) + stage[:, 3] * tasks
    scores += stage[:, 4] * np.log(nodes[:, :, 6] + 1e-2) + stage[:, 5] * np.log(nodes[:, :, 7] + 1e-3)
    scores = np.where(observations["action_mask"][:, :used] > 0, scores, -np.inf)
    chosen = scores.argmax(axis=1)

    rows = np.arange(len(chosen))
    job = of_job[rows, chosen]
    alive = jobs[:, :, 3] > 0
    mean = (jobs[:, :, 3] * alive).sum(axis=1) / np.maximum(alive.sum(axis=1), 1)
    features = np.stack(
        [
            np.ones(len(chosen)),
            np.log(np.maximum(cluster[:, 2], 1.0)),
            np.log((jobs[rows, job, 3] + 1e-3) / (mean + 1e-3)),
            tasks[rows, chosen],
            held[rows, job],
            local[rows, job],
        ],
        axis=1,
    )
    part = np.exp(np.clip((weights[:, len(STAGE) :] * features).sum(axis=1), -20.0, 0.0))
    limit = np.maximum(np.rint(part * executors[:, 0]), observations["least_limit"][rows, job])
    limit = np.clip(limit, 1, executors[:, 0])
    return np.stack([chosen, limit.astype(np.int64) - 1], axis=1)


def play(envs: LabVectorEnv, weights: Weights, seeds: list[int]) -> tuple[npt.NDArray[np.float64], int]:
    """Play an episode in each environment.

    Returns the mean completion times in seconds, and how many decisions were made in all.
    """
    observations, _ = envs.reset(seed=seeds)
    times = np.full(envs.num_envs, np.nan)
    decisions = 0
    while np.isnan(times).any():
        observations, _, terminated, truncated, info = envs.step(decide(observations, weights))
        decisions += envs.num_envs
        # An environment that is done goes on with another episode, which does not count.
        ended = (terminated | truncated) & np.isnan(times)
        times[ended] = info["mean_completion"][ended]
    return times, decisions
