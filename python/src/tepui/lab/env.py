"""Single environments. :mod:`tepui.lab.vector` steps many together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium

from .served import Served
from .spaces import Observation, Results, action_space, observation_space, pack


class LabEnv(Served, gymnasium.Env[Observation, Any]):
    """An environment of the laboratory, in a process of ``tepui lab serve`` of its own.

    The seed of :meth:`reset` determines everything: the same seed and the same actions lead to the same episode. A
    reset without a seed begins the next episode, which the last seed determines.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012
    name: ClassVar[str] = ""

    def __init__(self, *, render_mode: None = None, **settings: Any) -> None:
        """Start the program and make the environment. Settings that are ``None`` have their defaults."""
        if render_mode is not None:
            raise ValueError(f"render_mode '{render_mode}': environments of the laboratory draw nothing")
        self.render_mode = None
        self._open(self.name, settings, 1, 1, False)
        self._was_seeded = False
        self.observation_space = observation_space(self._form)
        self.action_space = action_space(self._form)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin the episode of this seed, or the next one."""
        super().reset(seed=seed)
        way = (2, 0)
        if seed is not None:
            way = (1, seed)
        elif not self._was_seeded:
            way = (1, int(self.np_random.integers(1 << 53)))
        self._was_seeded = True
        results = self._reader.read(self._program.reset(self._handle, [way]))
        return self._first(results), self._info(results)

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Apply an action. Virtual time passes until the next decision."""
        self._program.step_begin(self._handle, pack(self._form, action, 1))
        results = self._reader.read(self._program.step_end())
        terminated, truncated = bool(results.terminated[0]), bool(results.truncated[0])
        return self._first(results), float(results.rewards[0]), terminated, truncated, self._info(results)

    def close(self) -> None:
        """End the program."""
        self._program.close()

    def _first(self, results: Results) -> Observation:
        return {name: values[0] for name, values in results.observations.items()}

    def _info(self, results: Results) -> dict[str, Any]:
        info: dict[str, Any] = dict(zip(self._form["info"], map(float, results.info[0]), strict=True))
        info["seed"] = int(results.seeds[0])
        return info


class DagScheduling(LabEnv):
    """Jobs of stages on a cluster (Decima, SIGCOMM 2019): which stage gets the free executors, and its job's limit.

    An observation has the graphs of the visible jobs: ``nodes`` (features of stages; the first five are Decima's),
    ``jobs`` (features of jobs), ``global`` (free executors, executors, jobs in the cluster, seconds), ``node_job`` (the
    job of each stage), ``edges`` (parent and child), ``least_limit`` (the smallest limit that gives a job an executor),
    ``node_mask`` (what is not padding) and ``action_mask`` (stages that can be chosen). Unused places are 0, those of
    ``node_job`` and ``edges`` -1.

    An action is a stage and the number of executors that its job may have, less one. Invalid actions are corrected to
    the first stage of the mask and to the least limit; ``info["corrected"]`` counts the corrections.

    The reward is -Δt · jobs in the cluster over all jobs, so the return is minus the mean completion time in seconds;
    or with ``reward="makespan"`` minus the seconds that pass.
    """

    name = "DagScheduling"

    def __init__(
        self,
        *,
        jobs: int = 20,
        executors: int = 50,
        gap: float | None = None,
        sizes: Sequence[str] = (),
        tpch: str | None = None,
        queries: int = 1,
        moving_delay: float = 2.0,
        reward: str = "completion",
        horizon: float | None = None,
        visible: int | None = None,
        render_mode: None = None,
    ) -> None:
        """Make the environment.

        *jobs* are drawn from queries like those of TPC-H, made by the seed *queries* or read from the directory *tpch*
        of the public traces, with inputs of these *sizes* (``2g`` to ``100g``; the paper's six if empty). They arrive
        with a mean *gap* in seconds, or all at once. An executor moves to another job in *moving_delay* seconds. An
        episode is truncated after *horizon* seconds. An observation has the first *visible* jobs; all, up to 50, if
        *visible* is not set.
        """
        super().__init__(
            render_mode=render_mode,
            jobs=jobs,
            executors=executors,
            gap=gap,
            sizes=list(sizes),
            tpch=tpch,
            queries=queries,
            moving_delay=moving_delay,
            reward=reward,
            horizon=horizon,
            visible=visible,
        )


class OfferPolicies(LabEnv):
    """The master's policies of offers, tuned while a scenario of the laboratory runs. A step is a period of its time.

    An action has four numbers; 0 keeps the scenario's value. Holding (1 to 7): offers may be held 1, 2, 5, 10, 30,
    60, 300 s. Refusal (1 to 6): every refusal lasts 1, 5, 15, 30, 60, 300 s. Granularity (1 to 3): agents are offered
    in parts of 1/2, 1/4, 1/8 of the largest one. Share (1 to 4): a framework may hold 0.5, 0.25, 0.1, 0.05 of the
    cluster as offers.

    An observation has means over the last period: ``frameworks`` (share, fair share, share held as offers, waiting
    tasks, refusals, waiting time in seconds of the tasks that started, number of tasks that started), ``cluster``
    (used, in offers, gap between shares, Jain's index, lost share, part of the time that has passed), ``policies`` (the
    last action).

    The reward is -(unfairness · gap + lost · lost share + waiting · minutes that tasks waited).
    """

    name = "OfferPolicies"

    def __init__(
        self,
        *,
        scenario: str | None = None,
        period: float = 30.0,
        unfairness: float = 1.0,
        lost: float = 1.0,
        waiting: float = 0.0,
        render_mode: None = None,
    ) -> None:
        """Make the environment over the file *scenario*, or the default scenario, with steps of *period* seconds."""
        super().__init__(
            render_mode=render_mode,
            scenario=scenario,
            period=period,
            unfairness=unfairness,
            lost=lost,
            waiting=waiting,
        )


class TaskSizing(LabEnv):
    """Sizes of a stage's tasks, wave by wave, on the machines of the study of Libra (SoCC 2019).

    An action is the logarithm to base 2 of the next wave's size in MiB, 0 to 12. An observation has ``stage`` (part of
    the input that is left, logarithm to base 2 of the MiB left for each executor, executors, seconds) and ``waves``:
    for the last two waves the size, tasks that finished for each executor, mean and deviation of the logarithms to base
    2 of their MiB/s, and the logarithm of 1 + seconds. The reward is minus the seconds that pass.
    """

    name = "TaskSizing"

    def __init__(
        self, *, stage: str = "any", start: float = 8.0, input: float = 1.0, render_mode: None = None
    ) -> None:
        """Make the environment.

        *stage* is scan, join, slow start, compute or neighbour; the seed chooses one if it is ``any``. *start* is the
        size in MiB in the first observation, *input* a multiple of the study's input.
        """
        super().__init__(render_mode=render_mode, stage=stage, start=start, input=input)


class VideoBitrate(LabEnv):
    """Video in chunks over a varying network (Pensieve, SIGCOMM 2017): the bitrate of the next chunk.

    An action is a rung of the ladder. An observation has ``state`` (last bitrate in Mbit/s, seconds in the buffer, part
    of the chunks that are left, seconds), ``throughput`` (Mbit/s) and ``download`` (seconds) of the last eight chunks,
    ``next_sizes`` (MB) and ``ladder`` (Mbit/s) for each rung. The reward is the bitrate in Mbit/s less
    *rebuffer_penalty* for each second that the video stalls, less *change_penalty* for each Mbit/s that it changes.
    """

    name = "VideoBitrate"

    def __init__(
        self,
        *,
        ladder: Sequence[int] = (300, 750, 1200, 1850, 2850, 4300),
        chunks: int = 48,
        chunk_seconds: float = 4.0,
        movie: int = 1,
        traces: Sequence[str] = (),
        lowest: float = 0.2,
        highest: float = 4.3,
        noise: float = 0.1,
        buffer: float = 60.0,
        rebuffer_penalty: float = 4.3,
        change_penalty: float = 1.0,
        render_mode: None = None,
    ) -> None:
        """Make the environment.

        The network follows one of the files *traces* (a time in seconds and Mbit/s on each line), chosen by the seed,
        or a chain of mean bandwidths between *lowest* and *highest* Mbit/s.
        """
        super().__init__(
            render_mode=render_mode,
            ladder=list(ladder),
            chunks=chunks,
            chunk_seconds=chunk_seconds,
            movie=movie,
            traces=list(traces),
            lowest=lowest,
            highest=highest,
            noise=noise,
            buffer=buffer,
            rebuffer_penalty=rebuffer_penalty,
            change_penalty=change_penalty,
        )


class LoadBalance(LabEnv):
    """Jobs with heavy-tailed sizes on servers of different speed, as in Park (NeurIPS 2019): the server of each job.

    An observation has ``work`` (remaining size of the jobs of each server), ``speed`` and ``size`` (of the job that has
    arrived). The reward is -Δt · jobs over all jobs: the return is minus the mean time of a job in the system, in
    seconds.
    """

    name = "LoadBalance"

    def __init__(
        self,
        *,
        servers: int = 10,
        jobs: int = 1000,
        gap: float = 55.0,
        scale: float = 100.0,
        shape: float = 1.5,
        slowest: float = 0.15,
        fastest: float = 1.05,
        render_mode: None = None,
    ) -> None:
        """Make the environment: Pareto sizes of *scale* and *shape*, arrivals with a mean *gap* in seconds."""
        super().__init__(
            render_mode=render_mode,
            servers=servers,
            jobs=jobs,
            gap=gap,
            scale=scale,
            shape=shape,
            slowest=slowest,
            fastest=fastest,
        )
