"""Gymnasium environments over tepui's laboratory.

    import tepui.lab

    env = tepui.lab.DagScheduling(jobs=20)
    observation, info = env.reset(seed=1)

Many environments step together, on threads and without Python in the loop:

    envs = tepui.lab.vector("DagScheduling", num_envs=16, threads=2, jobs=20)

The environments run in the program ``tepui lab serve``, which this package starts: the program that the environment
variable ``TEPUI`` names, otherwise ``tepui`` on the PATH. They are registered with Gymnasium as
``tepui/DagScheduling-v0`` and so on, for ``gymnasium.make`` and ``gymnasium.make_vec``.
"""

from typing import Any

from gymnasium.envs.registration import register, registry

from .compare import Spread, paired, spread
from .env import (
    DagScheduling,
    LabEnv,
    LoadBalance,
    OfferPolicies,
    TaskSizing,
    VideoBitrate,
)
from .program import LabError, Rollout
from .vector import LabVectorEnv, vector

__all__ = [
    "DagScheduling",
    "LabEnv",
    "LabError",
    "LabVectorEnv",
    "LoadBalance",
    "OfferPolicies",
    "Rollout",
    "Spread",
    "TaskSizing",
    "VideoBitrate",
    "paired",
    "spread",
    "vector",
]


def _vector_entry(name: str) -> Any:
    def entry(num_envs: int = 1, **settings: Any) -> LabVectorEnv:
        return vector(name, num_envs, **settings)

    return entry


for _class in (DagScheduling, OfferPolicies, TaskSizing, VideoBitrate, LoadBalance):
    _id = f"tepui/{_class.__name__}-v0"
    if _id not in registry:
        # The checks are not needed: the program ensures the ranges of all values.
        register(
            _id,
            entry_point=f"tepui.lab:{_class.__name__}",
            vector_entry_point=_vector_entry(_class.__name__),
            disable_env_checker=True,
        )
