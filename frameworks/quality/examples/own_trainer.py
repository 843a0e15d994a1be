"""A program for the quality framework: logistic regression by gradient descent, with the standard library only.

Divides the rows among as many processes as it has cores.
"""

import argparse
import json
import math
import random
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

# The module can be copied beside this file instead.
sys.path.append(str(Path(__file__).resolve().parent / "../../../python/src/tepui"))
from training import Training


def gradient(rows, weights):
    """Return the gradient over some rows, their loss, and the number of correct predictions."""
    total, loss, right = [0.0] * len(weights), 0.0, 0
    for row, label in rows:
        output = sum(w * x for w, x in zip(weights, row))
        loss += math.log1p(math.exp(-output if label else output))
        right += (output > 0) == label
        slope = 1 / (1 + math.exp(-output)) - label
        total = [t + slope * x for t, x in zip(total, row)]
    return total, loss, right


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--iterations", type=int, default=50)
    parser.add_argument("--fixed", action="store_true", help="keep one core")
    args = parser.parse_args()

    chance = random.Random(1)
    truth = [chance.gauss(0, 1) for _ in range(args.columns)]
    rows = [[chance.gauss(0, 1) for _ in truth] for _ in range(args.rows)]
    data = [(row, sum(w * x for w, x in zip(truth, row)) + chance.gauss(0, 1) > 0) for row in rows]

    training = Training(elastic=not args.fixed, checkpoints=True)
    weights = json.loads(training.checkpoint) if training.checkpoint else [0.0] * args.columns

    def state():
        return json.dumps(weights)

    print(f"begins with iteration {training.iteration} on {training.cores} cores")  # to standard error
    with ProcessPoolExecutor(training.cores) as pool:
        for iteration in training:
            if iteration >= args.iterations:
                training.save(state())
                break
            parts = [data[core :: training.cores] for core in range(training.cores)]
            sums = list(pool.map(gradient, parts, [weights] * training.cores))
            total = [sum(part) for part in zip(*(s[0] for s in sums))]
            loss, right = sum(s[1] for s in sums) / args.rows, sum(s[2] for s in sums)
            weights = [w - 2.0 * t / args.rows for w, t in zip(weights, total)]
            training.report(loss, accuracy=right / args.rows, samples=args.rows, state=state)


if __name__ == "__main__":
    main()
