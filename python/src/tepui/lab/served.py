"""The common part of single and vector environments: the program that serves them, and episodes of its policies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .program import LabError, Program, Rollout
from .spaces import Reader


class Served:
    """Environments in a process of ``tepui lab serve``."""

    _program: Program
    _form: dict[str, Any]

    def _open(self, name: str, settings: dict[str, Any], count: int, threads: int, autoreset: bool) -> None:
        """Start the program and make the environments. Settings that are ``None`` have their defaults."""
        self._name, self._threads = name, threads
        self._settings = {key: value for key, value in settings.items() if value is not None}
        self._program = Program()
        try:
            self._handle, self._form = self._program.open(name, self._settings, count, threads, autoreset)
        except LabError:
            self._program.close()
            raise
        self._reader = Reader(self._form, count)
        self._baselines: int | None = None

    @property
    def process_id(self) -> int:
        """The id of the program's process."""
        return self._program.process_id

    @property
    def policies(self) -> str:
        """The policies that :meth:`baseline` supports."""
        return str(self._form["policies"])

    def baseline(self, policy: str, seeds: int | Sequence[int]) -> list[Rollout]:
        """Run the episodes of these seeds under a policy, given by name, without Python in the loop.

        Current episodes are not affected. :func:`tepui.lab.paired` compares the results.
        """
        if self._baselines is None:
            threads = self._threads
            self._baselines, _ = self._program.open(self._name, self._settings, threads, threads, False)
        of = [seeds] if isinstance(seeds, int) else [int(seed) for seed in seeds]
        rows = self._program.baseline(self._baselines, policy, of)
        names = self._form["info"]
        return [
            Rollout(seed, float(row[0]), dict(zip(names, map(float, row[1:]), strict=True)))
            for seed, row in zip(of, rows, strict=True)
        ]
