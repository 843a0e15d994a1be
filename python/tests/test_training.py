"""Tests a training program in the role of the framework: its lines, and its answers to requests."""

import json
import subprocess
import sys

PROGRAM = """
from tepui import Training

class Number:
    def item(self):
        return 0.5

training = Training(checkpoints=True)
print("for people")
for iteration in training:
    training.report(1 / (iteration + 1), accuracy=Number(), state=lambda: f"after {iteration}")
    while iteration == 8 and not training._stopped.is_set():
        pass
"""


def test_a_program_begins_where_it_is_told_to_and_leaves_a_checkpoint() -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert program.stdin is not None and program.stdout is not None
    program.stdin.write(json.dumps({"start": {"cores": 2, "iteration": 7, "checkpoint": "x"}}) + "\n")
    program.stdin.flush()
    lines = [json.loads(program.stdout.readline()) for _ in range(3)]
    assert lines[0] == {"hello": {"elastic": False, "checkpoints": True}}
    assert [(line["iteration"], line["accuracy"]) for line in lines[1:]] == [(7, 0.5), (8, 0.5)]
    program.stdin.write('{"request": "stop"}\n')
    program.stdin.close()
    rest = [json.loads(line) for line in program.stdout]
    assert program.wait(10) == 0
    assert rest == [{"checkpoint": "after 8", "iteration": 8}]


BEST = """
from tepui import Training

training = Training(checkpoints=True)
for iteration, loss in zip(training, [0.5, 0.3, 0.4, 0.2]):
    training.report(1.0, validation={"loss": loss}, state=lambda: f"after {iteration}")
"""


def test_a_program_leaves_checkpoints_of_its_best_iterations() -> None:
    program = subprocess.Popen([sys.executable, "-c", BEST], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert program.stdin is not None and program.stdout is not None
    program.stdin.write(json.dumps({"start": {"best": 0.35}}) + "\n")
    program.stdin.flush()
    lines = [json.loads(line) for line in program.stdout]
    program.stdin.close()
    assert program.wait(10) == 0
    assert [line["checkpoint"] for line in lines if "checkpoint" in line] == ["after 1", "after 3"]
