"""Many environments that step together in one process of ``tepui lab serve``, on threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from .served import Served
from .spaces import Array, Observation, Results, action_space, observation_space, pack


class LabVectorEnv(Served, VectorEnv[Observation, Any, Array]):
    """Environments of the laboratory that step together. Observations are views of the answer, without copies.

    An environment whose episode has ended begins its next one at its next step, without regard to its action
    (``AutoresetMode.NEXT_STEP``), or waits for a reset with ``options={"reset_mask": ...}`` (``DISABLED``).

    Equal seeds give equal episodes: with ``reset(seed=[7] * n)`` n policies have the same random numbers.
    """

    def __init__(
        self,
        name: str,
        num_envs: int,
        *,
        threads: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        **settings: Any,
    ) -> None:
        """Make *num_envs* environments of this name. Settings that are ``None`` have their defaults."""
        mode = AutoresetMode(autoreset_mode) if isinstance(autoreset_mode, str) else autoreset_mode
        if mode is AutoresetMode.SAME_STEP:
            raise ValueError("autoreset_mode must be NEXT_STEP or DISABLED: SAME_STEP is not supported")
        self.num_envs = num_envs
        self.metadata = {"render_modes": [], "autoreset_mode": mode}
        self.render_mode = None
        self._open(name, settings, num_envs, threads, mode is AutoresetMode.NEXT_STEP)
        self._was_seeded = np.zeros(num_envs, np.bool_)
        self._all = np.ones(num_envs, np.bool_)
        self._all.flags.writeable = False
        self.single_observation_space = observation_space(self._form)
        self.single_action_space = action_space(self._form)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin the episodes of these seeds, or the next ones.

        From a single seed the environments get consecutive seeds, as in Gymnasium. ``options={"reset_mask": mask}``
        resets some of them.
        """
        mask = self._all if options is None else options.get("reset_mask", self._all)
        if mask.shape != (self.num_envs,) or mask.dtype != np.bool_ or not mask.any():
            raise ValueError(f"reset_mask must be {self.num_envs} booleans, one of them true")
        if seed is None or isinstance(seed, int):
            seeds: list[int | None] = [None if seed is None else seed + at for at in range(self.num_envs)]
        else:
            seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise ValueError(f"{len(seeds)} seeds: there must be one for each of {self.num_envs} environments")
        super().reset(seed=next((one for one in seeds if one is not None), None))
        ways = [self._way(at, seeds[at]) if mask[at] else (0, 0) for at in range(self.num_envs)]
        self._was_seeded |= mask
        results = self._reader.read(self._program.reset(self._handle, ways))
        return results.observations, self._info(results)

    def _way(self, at: int, seed: int | None) -> tuple[int, int]:
        if seed is not None:
            return 1, int(seed)
        return (2, 0) if self._was_seeded[at] else (1, int(self.np_random.integers(1 << 53)))

    def step(
        self, actions: Any
    ) -> tuple[Observation, Array, npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]:
        """Apply an action in each environment."""
        self.step_async(actions)
        return self.step_wait()

    def step_async(self, actions: Any) -> None:
        """Send actions. The environments step while the caller continues, until :meth:`step_wait`."""
        self._program.step_begin(self._handle, pack(self._form, actions, self.num_envs))

    def step_wait(
        self,
    ) -> tuple[Observation, Array, npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]:
        """Wait for the results of the last actions."""
        results = self._reader.read(self._program.step_end())
        return results.observations, results.rewards, results.terminated, results.truncated, self._info(results)

    def close_extras(self, **kwargs: Any) -> None:
        """End the program."""
        self._program.close()

    def _info(self, results: Results) -> dict[str, Any]:
        info: dict[str, Any] = {}
        for at, name in enumerate(self._form["info"]):
            info[name], info[f"_{name}"] = results.info[:, at], self._all
        info["seed"], info["_seed"] = results.seeds, self._all
        return info


def vector(
    name: str,
    num_envs: int,
    *,
    threads: int = 1,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    **settings: Any,
) -> LabVectorEnv:
    """Return *num_envs* environments of this name that step together on *threads* threads.

    The settings are those of the environment's class: ``vector("DagScheduling", 16, threads=2, jobs=20)``.
    """
    return LabVectorEnv(name, num_envs, threads=threads, autoreset_mode=autoreset_mode, **settings)
