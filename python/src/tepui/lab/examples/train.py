"""Trains a small policy for jobs of stages by evolution strategies, and compares it on seeds that it has not seen.

    python -m tepui.lab.examples.train --minutes 5

In each iteration 16 variants of the weights, in pairs of opposite directions, schedule the same jobs with the same
random numbers: only the policies differ. The weights move towards the better variants. At the end the policy is
compared with heuristics of tepui on each held-out seed. The program needs NumPy only.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tepui.lab import LabVectorEnv, paired, spread, vector

from .policy import NAMES, Weights, play, start

PAIRS = 8
SIGMA = 0.25
RATE = 0.12
# Above the seeds of the training.
HELD_OUT = 1_000_000
BASELINES = ("random", "fifo", "fair", "weighted -0.5", "remaining")


@dataclass
class Adam:
    """Steps along noisy gradients (Kingma and Ba, 2015)."""

    mean: Weights
    square: Weights
    steps: int = 0

    def step(self, gradient: Weights, rate: float) -> Weights:
        """Return the step in the direction of the gradient."""
        self.steps += 1
        self.mean = 0.9 * self.mean + 0.1 * gradient
        self.square = 0.99 * self.square + 0.01 * gradient**2
        mean = self.mean / (1 - 0.9**self.steps)
        square = self.square / (1 - 0.99**self.steps)
        return np.asarray(rate * mean / (np.sqrt(square) + 1e-8))


@dataclass
class Training:
    """The result of a training."""

    weights: Weights
    iterations: int = 0
    decisions: int = 0
    seconds: float = 0.0
    curve: list[tuple[float, float]] = field(default_factory=list)
    """Seconds and mean completion time on the held-out seeds."""


def ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the ranks of values, spread evenly from -0.5 to 0.5, which limits the weight of outliers."""
    return np.argsort(np.argsort(values)) / (len(values) - 1) - 0.5


def train(arguments: argparse.Namespace, settings: dict[str, Any], held_out: LabVectorEnv) -> Training:
    """Train for the given time, or for the given number of iterations."""
    random = np.random.default_rng(arguments.seed)
    training = Training(start())
    adam = Adam(np.zeros(len(NAMES)), np.zeros(len(NAMES)))
    envs = vector("DagScheduling", 2 * PAIRS, threads=arguments.threads, **settings)
    began = time.monotonic()
    limit = 60.0 * arguments.minutes
    next_look = 0.0
    while training.iterations < arguments.iterations if arguments.iterations else training.seconds < limit:
        noise = random.standard_normal((PAIRS, len(NAMES)))
        both = np.concatenate([noise, -noise])
        # All variants have the same seed.
        seed = int(random.integers(HELD_OUT))
        times, decisions = play(envs, training.weights + SIGMA * both, [seed] * len(both))
        gradient = -(ranks(times)[:, None] * both).sum(axis=0) / len(both)
        # Steps get shorter: the first ones approach the optimum, later ones average over seeds.
        rate = RATE / np.sqrt(1 + training.iterations / 30)
        training.weights = training.weights + adam.step(gradient, rate)
        training.iterations += 1
        training.decisions += decisions
        training.seconds = time.monotonic() - began
        if training.seconds >= next_look:
            mean = float(evaluate(held_out, training.weights, arguments.seeds).mean())
            training.curve.append((training.seconds, mean))
            print(f"{training.seconds:6.0f} s  iteration {training.iterations:4d}  held-out mean {mean:8.2f} s", flush=True)
            next_look = training.seconds + max(limit / 20, 2.0)
    envs.close()
    return training


def evaluate(envs: LabVectorEnv, weights: Weights, seeds: int) -> npt.NDArray[np.float64]:
    """Return the mean completion times of the held-out seeds."""
    times, _ = play(envs, np.tile(weights, (seeds, 1)), [HELD_OUT + at for at in range(seeds)])
    return times


def report(envs: LabVectorEnv, training: Training, seeds: int) -> str:
    """Return a table of policies over the held-out seeds, with their differences from fair shares."""
    numbers = list(range(HELD_OUT, HELD_OUT + seeds))
    rows = {name: [one.info["mean_completion"] for one in envs.baseline(name, numbers)] for name in BASELINES}
    rows["start"] = list(evaluate(envs, start(), seeds))
    rows["trained"] = list(evaluate(envs, training.weights, seeds))
    lines = [f"{'POLICY':<14} {'MEAN COMPLETION s':>20} {'LESS THAN FAIR s':>20}"]
    for name, times in rows.items():
        lines.append(f"{name:<14} {spread(times)!s:>20} {paired(rows['fair'], times)!s:>20}")
    for other in ("start", "remaining"):
        gain = paired(rows[other], rows["trained"])
        lines.append(f"trained is {gain} s shorter than {other}, on {seeds} held-out seeds (95 % intervals)")
    return "\n".join(lines)


def curve(points: list[tuple[float, float]]) -> str:
    """Return the learning curve as SVG."""
    width, height, edge = 640, 360, 48
    last = max(seconds for seconds, _ in points) or 1.0
    low, high = min(mean for _, mean in points), max(mean for _, mean in points)
    span = (high - low) or 1.0

    def place(seconds: float, mean: float) -> str:
        x = edge + (width - 2 * edge) * seconds / last
        y = height - edge - (height - 2 * edge) * (mean - low) / span
        return f"{x:.1f},{y:.1f}"

    line = " ".join(place(*point) for point in points)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="12"><polyline points="{line}" fill="none" stroke="#1f77b4" stroke-width="2"/>'
        f'<text x="{edge}" y="{edge - 12}">mean completion on held-out seeds: {high:.1f} s at the top, {low:.1f} s at '
        f'the bottom</text><text x="{edge}" y="{height - edge + 24}">0 to {last:.0f} s of training</text></svg>\n'
    )


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tepui.lab.examples.train", description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=5.0, help="how long to train (default: 5)")
    parser.add_argument("--iterations", type=int, help="how many iterations to train, whatever time they take")
    parser.add_argument("--jobs", type=int, default=20, help="jobs of an episode (default: 20)")
    parser.add_argument("--executors", type=int, default=50, help="executors of the cluster (default: 50)")
    parser.add_argument("--seeds", type=int, default=20, help="held-out seeds (default: 20)")
    parser.add_argument("--threads", type=int, default=2, help="threads of the environments (default: 2)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the training (default: 1)")
    parser.add_argument("--tpch", help="directory of the public TPC-H traces; queries are generated otherwise")
    parser.add_argument("--out", type=Path, default=Path("tepui-lab-train"), help="directory of the results")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Train, print the table, and write weights, learning curve and table."""
    given = parse(arguments)
    settings = {"jobs": given.jobs, "executors": given.executors, "tpch": given.tpch}
    held_out = vector("DagScheduling", given.seeds, threads=given.threads, **settings)
    training = train(given, settings, held_out)
    rate = training.decisions / max(training.seconds, 1e-9)
    table = report(held_out, training, given.seeds)
    held_out.close()
    print(f"{training.iterations} iterations, {training.decisions} decisions, {rate:.0f} a second\n\n{table}")
    given.out.mkdir(parents=True, exist_ok=True)
    weights = dict(zip(NAMES, map(float, training.weights), strict=True))
    (given.out / "weights.json").write_text(json.dumps(weights, indent=2) + "\n")
    (given.out / "curve.svg").write_text(curve(training.curve))
    (given.out / "table.txt").write_text(table + "\n")
    print(f"weights.json, curve.svg and table.txt are in {given.out}")


if __name__ == "__main__":
    main()
