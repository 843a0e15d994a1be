"""Tests environments of the laboratory against Gymnasium's rules, and against the program's own runs.

The tests need the program tepui: the value of TEPUI, or tepui on the PATH.
"""

import os
import shutil
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import tepui.lab
from tepui.lab.examples import train

pytestmark = pytest.mark.skipif(
    not os.environ.get("TEPUI") and shutil.which("tepui") is None, reason="there is no program tepui"
)

CLASSES = [
    tepui.lab.DagScheduling,
    tepui.lab.OfferPolicies,
    tepui.lab.TaskSizing,
    tepui.lab.VideoBitrate,
    tepui.lab.LoadBalance,
]
SMALL: dict[str, dict[str, Any]] = {
    "DagScheduling": {"jobs": 3, "executors": 8, "sizes": ["2g"]},
    "OfferPolicies": {"period": 600.0},
    "TaskSizing": {"input": 0.1},
    "VideoBitrate": {"chunks": 6},
    "LoadBalance": {"jobs": 6, "servers": 3},
}


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.filterwarnings("ignore:.*infinity.*", "ignore:.*not within.*", "ignore:.*dtype.*")
@pytest.mark.parametrize("kind", CLASSES)
def test_gymnasiums_checker_passes(kind: type[tepui.lab.LabEnv]) -> None:
    env = kind(**SMALL[kind.name])
    check_env(env, skip_render_check=True)
    env.close()


@pytest.mark.parametrize("kind", CLASSES)
def test_a_seed_decides_the_episode_and_those_after_it(kind: type[tepui.lab.LabEnv]) -> None:
    def play() -> list[Any]:
        env = kind(**SMALL[kind.name])
        env.action_space.seed(5)
        seen: list[Any] = []
        observation, info = env.reset(seed=11)
        assert env.observation_space.contains(observation) and info["seed"] == 11
        for _ in range(2):
            over = False
            while not over:
                observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
                over = terminated or truncated
                seen.append((observation, reward, over, info))
            observation, info = env.reset()
            seen.append((observation, 0.0, False, info))
        env.close()
        return seen

    one, other = play(), play()
    assert len(one) == len(other)
    for (first, *rest), (second, *others) in zip(one, other, strict=True):
        assert same(first, second) and rest == others
    assert one[-1][3]["seed"] not in (0, 11)


@pytest.mark.parametrize("kind", CLASSES)
def test_vectors_do_what_single_environments_do_on_any_number_of_threads(kind: type[tepui.lab.LabEnv]) -> None:
    seeds = [3, 4, 3]
    single = [kind(**SMALL[kind.name]) for _ in seeds]
    many = [tepui.lab.vector(kind.name, len(seeds), threads=threads, **SMALL[kind.name]) for threads in (1, 2)]
    begun = [env.reset(seed=seed)[0] for env, seed in zip(single, seeds, strict=True)]
    for envs in many:
        observations, _ = envs.reset(seed=seeds)
        assert envs.observation_space.contains(observations)
        for at, one in enumerate(begun):
            assert same(one, {name: values[at] for name, values in observations.items()})
    space = many[0].action_space
    space.seed(1)
    ended = [False] * len(seeds)
    for _ in range(12):
        actions = space.sample()
        results = [envs.step(actions) for envs in many]
        for observations, rewards, terminated, _, info in results:
            assert same(observations, results[0][0]) and np.array_equal(rewards, results[0][1])
            assert np.array_equal(terminated, results[0][2]) and np.array_equal(info["seed"], results[0][4]["seed"])
        for at, env in enumerate(single):
            if ended[at]:
                # The step that begins the next episode has no reward.
                observation, _ = env.reset()
                assert results[0][1][at] == 0.0
                ended[at] = False
            else:
                observation, reward, ended[at], _, _ = env.step(actions[at])
                assert reward == results[0][1][at] and ended[at] == results[0][2][at]
            assert same(observation, {name: values[at] for name, values in results[0][0].items()})
    for env in single:
        env.close()
    for envs in many:
        envs.close()


def test_ended_environments_wait_for_a_reset_if_told_so() -> None:
    envs = tepui.lab.vector("LoadBalance", 2, autoreset_mode=AutoresetMode.DISABLED, jobs=2, servers=2)
    envs.reset(seed=1)
    envs.step([0, 0])
    _, _, terminated, _, _ = envs.step([0, 0])
    assert terminated.all()
    with pytest.raises(tepui.lab.LabError, match="environment 0 has no episode: reset it first"):
        envs.step([0, 0])
    envs.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(tepui.lab.LabError, match="environment 1 has no episode"):
        envs.step([0, 0])
    with pytest.raises(ValueError, match="2 booleans"):
        envs.reset(options={"reset_mask": np.array([False, False])})
    envs.close()


def test_policies_from_here_have_the_outcome_of_the_programs_own() -> None:
    env = tepui.lab.LoadBalance(jobs=40, servers=3)
    for expected in env.baseline("least-work", [1, 2, 3]):
        observation, _ = env.reset(seed=expected.seed)
        total, over = 0.0, False
        while not over:
            observation, reward, over, _, info = env.step(int(observation["work"].argmin()))
            total += reward
        assert total == pytest.approx(expected.total)
        assert info["mean_time"] == pytest.approx(expected.info["mean_time"])
    env.close()


def test_first_in_first_out_from_here_is_that_of_the_study() -> None:
    """The first stage that can run gets all free executors: FIFO, computed from the arrays of the observation."""
    env = tepui.lab.DagScheduling(jobs=8, executors=20)
    for expected in env.baseline("fifo", [1, 2]):
        observation, _ = env.reset(seed=expected.seed)
        over = False
        while not over:
            # Of the first job with a choice, stages whose parents have finished come first.
            choices = np.flatnonzero(observation["action_mask"])
            done = observation["nodes"][:, 4] + observation["nodes"][:, 5] == 0
            edges = observation["edges"][observation["edges"][:, 0] >= 0]
            waits = {int(child) for parent, child in edges if not done[parent]}
            job = observation["node_job"][choices[0]]
            of_job = [int(node) for node in choices if observation["node_job"][node] == job]
            node = next((node for node in of_job if node not in waits), of_job[0])
            observation, _, over, _, info = env.step([node, 19])
        assert info["mean_completion"] == pytest.approx(expected.info["mean_completion"])
        assert info["corrected"] == 0
    env.close()


def test_common_random_numbers_narrow_a_comparison() -> None:
    envs = tepui.lab.vector("DagScheduling", 2, threads=2, jobs=5, executors=10)
    seeds = range(10)
    fair, fifo = ([one.total for one in envs.baseline(name, seeds)] for name in ("fair", "fifo"))
    assert tepui.lab.paired(fair, fifo).half < tepui.lab.spread(fifo).half
    assert "fair" in envs.policies
    with pytest.raises(tepui.lab.LabError, match="unknown policy 'x': must be random, fifo, fair"):
        envs.baseline("x", 1)
    envs.close()


def test_any_scenario_is_an_environment(tmp_path: Path) -> None:
    scenario = tmp_path / "small.toml"
    job = '[[frameworks.jobs]]\nat = "0s"\ntasks = 40\nneeds = "cpus:1;mem:512"\ntime = "20s"\n'
    frameworks = "".join(f'[[frameworks]]\nname = "{name}"\nrole = "{name}"\n{job}' for name in ("a", "b", "c"))
    agents = '[[agents]]\ncount = 2\nresources = "cpus:4;mem:8192"\n'
    scenario.write_text(f'name = "small"\nduration = "2m"\n{agents}{frameworks}')
    env = tepui.lab.OfferPolicies(scenario=str(scenario), period=20.0)
    observation, _ = env.reset(seed=1)
    assert observation["frameworks"].shape == (3, 7)
    observation, _, _, _, info = env.step([3, 2, 0, 0])
    assert info["time"] == 20.0 and observation["frameworks"][:, 0].sum() > 0.5
    env.close()
    scenario.write_text('name = "small"\nduration = "2m"\nagents = 3\n')
    with pytest.raises(tepui.lab.LabError, match=r"small\.toml:3: invalid type"):
        tepui.lab.OfferPolicies(scenario=str(scenario))


def test_gymnasium_makes_them_by_name() -> None:
    env = gymnasium.make("tepui/LoadBalance-v0", servers=4)
    assert env.action_space == gymnasium.spaces.Discrete(4)
    env.close()
    envs = gymnasium.make_vec("tepui/VideoBitrate-v0", num_envs=2, chunks=3)
    assert envs.num_envs == 2 and isinstance(envs.unwrapped, tepui.lab.LabVectorEnv)
    envs.close()


def test_what_is_refused_names_the_item_and_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(tepui.lab.LabError, match="invalid 'jobs': must be 1 to 10,000"):
        tepui.lab.DagScheduling(jobs=0)
    env = tepui.lab.TaskSizing()
    env.reset(seed=1)
    with pytest.raises(tepui.lab.LabError, match="invalid action 0 of environment 0: 13 must be 0 to 12"):
        env.step([13.0])
    with pytest.raises(ValueError, match="expected 1 actions of 1 numbers"):
        env.step([1.0, 2.0])
    env.close()
    with pytest.raises(tepui.lab.LabError, match="the environment is closed"):
        env.step([1.0])
    monkeypatch.setenv("TEPUI", "/nowhere/tepui")
    with pytest.raises(tepui.lab.LabError, match="TEPUI names '/nowhere/tepui', which is not a program"):
        tepui.lab.LoadBalance()
    monkeypatch.delenv("TEPUI")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(tepui.lab.LabError, match="set the environment variable TEPUI"):
        tepui.lab.LoadBalance()


def test_the_example_learns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """After a few iterations completion times are shorter than at the start or at random, and near fair shares."""
    train.main(["--iterations", "25", "--jobs", "8", "--executors", "20", "--seeds", "8", "--out", str(tmp_path)])
    rows = {line[:14].strip(): line[14:] for line in capsys.readouterr().out.splitlines()}
    mean = {name: float(rows[name].split()[0]) for name in ("random", "fair", "start", "trained")}
    assert mean["trained"] < mean["start"] and mean["trained"] < mean["random"]
    assert mean["trained"] < 1.3 * mean["fair"]
    assert (tmp_path / "curve.svg").exists() and (tmp_path / "weights.json").exists()
