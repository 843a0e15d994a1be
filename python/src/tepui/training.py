"""A training program's side of the quality framework's protocol. It needs the standard library only."""

import json
import math
import os
import threading
from collections.abc import Callable, Iterator


class Training:
    """A run of a program: the iteration and the checkpoint that it continues from, and its number of cores.

    The framework uses the standard streams: from now on the program's own output goes to standard error.
    """

    def __init__(self, *, elastic: bool = False, checkpoints: bool = False) -> None:
        # Separate streams: a process forked while another thread reads sys.stdin would block on its lock.
        self._requests, nothing = os.fdopen(os.dup(0), encoding="utf-8"), os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        start = json.loads(self._requests.readline() or "{}").get("start", {})
        self.cores: int = start.get("cores", 1)
        self.iteration: int = start.get("iteration", 0)
        self.checkpoint: str | None = start.get("checkpoint")
        self._wanted, self._stopped = threading.Event(), threading.Event()
        self._unsaved: Callable[[], str] | None = None
        # With `patience` the framework keeps the checkpoint with the lowest validation loss.
        self._keeps_best, best = "best" in start, start.get("best")
        self._best: float = math.inf if best is None else best
        self._lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        self._write({"hello": {"elastic": elastic, "checkpoints": checkpoints or elastic}})
        threading.Thread(target=self._listen, daemon=True).start()

    def __iter__(self) -> Iterator[int]:
        """Yields the numbers of the iterations to run, until the framework stops the program."""
        while not self._stopped.is_set():
            yield self.iteration
        if self._unsaved is not None:
            self.save(self._unsaved())

    def report(self, loss: float, *, state: Callable[[], str] | None = None, **more: object) -> None:
        """Ends an iteration. `more`: accuracy, validation (loss, accuracy), samples, busy; `state` makes a checkpoint."""
        self._write({"iteration": self.iteration, "loss": loss, **more})
        self.iteration += 1
        self._unsaved = state
        if state is not None and (self._is_best(more.get("validation")) or self._wanted.is_set()):
            self.save(state())

    def save(self, checkpoint: str) -> None:
        """Writes a checkpoint of the last iteration, also if the framework has not requested one."""
        self._wanted.clear()
        self._unsaved = None
        self._write({"checkpoint": checkpoint, "iteration": self.iteration - 1})

    def _is_best(self, validation: object) -> bool:
        if not self._keeps_best or not isinstance(validation, dict) or validation["loss"] >= self._best:
            return False
        self._best = validation["loss"]
        return True

    def _write(self, line: dict[str, object]) -> None:
        # Numbers of NumPy and similar libraries become Python's by `item()`.
        self._lines.write(json.dumps(line, default=lambda number: number.item()) + "\n")
        self._lines.flush()

    def _listen(self) -> None:
        for line in self._requests:
            (self._stopped if json.loads(line).get("request") == "stop" else self._wanted).set()
        self._stopped.set()
