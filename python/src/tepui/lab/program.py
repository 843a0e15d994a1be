"""The program ``tepui lab serve``: its process, and the frames of requests and answers.

A frame is the length of the rest (32 bits), a kind (8 bits) and a body, all little-endian.
``src/learning/src/wire/mod.rs`` of tepui describes the kinds. Only one request is pending at a time.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import TepuiError

Buffer = npt.NDArray[np.uint8]

_VERSION = 1
_GREETING = b"TEPUI-LAB"
_HELLO, _OPEN, _RESET, _STEP, _BASELINE, _CLOSE, _ERROR = 1, 2, 3, 4, 5, 6, 255
_RESULTS = 3
_HEAD = struct.Struct("<IB")
_PIPE_BYTES = 1 << 20
_GRACE = 1.0
"""Seconds that the process has to end after its input, and again after SIGTERM."""
_SET_PIPE_SIZE = getattr(fcntl, "F_SETPIPE_SZ", None)


class LabError(TepuiError):
    """The laboratory refuses a request, or its program cannot be run. The message names the item and the rule."""


@dataclass(frozen=True)
class Rollout:
    """An episode under a built-in policy of the environment."""

    seed: int
    """The seed of the episode."""
    total: float
    """The sum of the rewards of all steps."""
    info: dict[str, float]
    """Measurements, as in the info of the episode's last step."""


def find() -> str:
    """Return the path of the program ``tepui``.

    It is the value of the environment variable ``TEPUI``, otherwise the first ``tepui`` on the PATH.
    """
    named = os.environ.get("TEPUI")
    if named:
        if not os.access(named, os.X_OK) or os.path.isdir(named):
            raise LabError(f"TEPUI names '{named}', which is not a program: set it to the path of tepui")
        return named
    found = shutil.which("tepui")
    if found is None:
        raise LabError(
            "the program tepui is not on the PATH: put it there, or set the environment variable TEPUI to its path; "
            "`cargo build --release` in tepui's sources makes target/release/tepui"
        )
    return found


def _end(process: subprocess.Popen[bytes]) -> None:
    """Wait for the end of a process whose input has ended. It is terminated after a second, and killed after another.

    A process that is busy with a request reads its input only after it.
    """
    try:
        for stop in (process.terminate, process.kill):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE)
                return
            stop()
    except KeyboardInterrupt:
        process.kill()
        raise
    finally:
        process.wait()


class Program:
    """A process of ``tepui lab serve``. It ends with this object."""

    def __init__(self) -> None:
        """Start the process and perform the handshake."""
        path = find()
        # A new session: only Python receives the SIGINT of Ctrl-C. The process exits at the end of its input.
        self._process = subprocess.Popen(
            [path, "lab", "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        self._waits = False
        if _SET_PIPE_SIZE is not None:
            for end in (self._to, self._from):
                # A smaller pipe works, too, with more system calls.
                with contextlib.suppress(OSError):
                    fcntl.fcntl(end.fileno(), _SET_PIPE_SIZE, _PIPE_BYTES)
        try:
            self._ask(_HELLO, _GREETING + _VERSION.to_bytes(2, "little"))
        except LabError as error:
            self.close()
            raise LabError(f"'{path} lab serve' does not serve this package: {error}") from error

    @property
    def process_id(self) -> int:
        """The id of the process."""
        return self._process.pid

    def open(
        self, name: str, settings: dict[str, Any], count: int, threads: int, autoreset: bool
    ) -> tuple[int, dict[str, Any]]:
        """Make environments. Returns their handle, and the form of their observations and actions."""
        request = {
            "name": name,
            "settings": settings,
            "count": count,
            "threads": threads,
            "autoreset": autoreset,
        }
        body = self._ask(_OPEN, json.dumps(request).encode()).tobytes()
        return int.from_bytes(body[:4], "little"), json.loads(body[4:])

    def reset(self, handle: int, ways: Sequence[tuple[int, int]]) -> Buffer:
        """Reset environments. *ways* has 0 (keep), 1 (use the seed) or 2 (next episode) and a seed for each of them."""
        body = b"".join(struct.pack("<BQ", way, seed) for way, seed in ways)
        return self._ask(_RESET, handle.to_bytes(4, "little") + body)

    def step_begin(self, handle: int, actions: bytes) -> None:
        """Send actions. :meth:`step_end` reads the results."""
        self._send(_STEP, handle.to_bytes(4, "little") + actions)

    def step_end(self) -> Buffer:
        """Wait for the results of the last actions."""
        return self._receive()

    def baseline(self, handle: int, policy: str, seeds: Sequence[int]) -> npt.NDArray[np.float64]:
        """Run the episodes of these seeds under a policy, given by name. Returns a row for each seed."""
        request = json.dumps({"policy": policy, "seeds": [int(seed) for seed in seeds]}).encode()
        body = self._ask(_BASELINE, handle.to_bytes(4, "little") + request)
        return body.view("<f8").reshape(len(seeds), -1)

    def close_handle(self, handle: int) -> None:
        """End environments."""
        self._ask(_CLOSE, handle.to_bytes(4, "little"))

    def close(self) -> None:
        """End the process, also if it is busy with a request. A second call does nothing."""
        if not self._to.closed:
            # The process may have exited.
            with contextlib.suppress(OSError):
                self._to.close()
            self._from.close()
            _end(self._process)

    def __del__(self) -> None:
        """End the process."""
        if hasattr(self, "_to"):
            self.close()

    def _ask(self, kind: int, body: bytes) -> Buffer:
        self._send(kind, body)
        return self._receive()

    def _send(self, kind: int, body: bytes) -> None:
        if self._waits:
            raise LabError("the results of the last step were not waited for: call step_wait first")
        if self._to.closed:
            raise LabError("the environment is closed")
        left = memoryview(_HEAD.pack(1 + len(body), kind) + body)
        try:
            while left:
                left = left[self._to.write(left) or 0 :]
        except OSError as error:
            raise LabError(f"tepui lab serve has ended with status {self._process.poll()}") from error
        self._waits = True

    def _receive(self) -> Buffer:
        if not self._waits:
            raise LabError("no step is under way: call step_async first")
        self._waits = False
        try:
            length, kind = _HEAD.unpack(self._read(_HEAD.size).tobytes())
            body = self._read(length - 1)
        except BaseException:
            # The rest of the answer is in the pipe and would be read as the next one.
            self.close()
            raise
        if kind == _ERROR:
            raise LabError(body.tobytes().decode(errors="replace"))
        return body

    def _read(self, count: int) -> Buffer:
        # New for each answer: observations are views of it and must not change.
        buffer: Buffer = np.empty(count, np.uint8)
        view, have = buffer.data, 0
        while have < count:
            more = self._from.readinto(view[have:])  # type: ignore[attr-defined]
            if not more:
                raise LabError("tepui lab serve has ended before its answer")
            have += more
        return buffer
