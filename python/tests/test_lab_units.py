"""Tests the process of the laboratory's program, with a script in place of tepui, and the bytes of actions."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tepui.lab.program import Program
from tepui.lab.spaces import pack

BUSY = """#!{python}
# Answers the handshake. Then it is busy for 30 s and does not read its input.
import signal, sys, time
signal.signal(signal.SIGTERM, signal.{on_term})
sys.stdout.buffer.write(bytes([1, 0, 0, 0, 1]))
sys.stdout.flush()
time.sleep(30)
"""


@pytest.mark.parametrize("on_term", ["SIG_DFL", "SIG_IGN"])
def test_an_interrupt_ends_a_busy_program(on_term: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "tepui"
    script.write_text(BUSY.format(python=sys.executable, on_term=on_term))
    script.chmod(0o755)
    monkeypatch.setenv("TEPUI", str(script))
    monkeypatch.setattr("tepui.lab.program._GRACE", 0.1)
    program = Program()
    before, began = signal.signal(signal.SIGALRM, signal.default_int_handler), time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            program.baseline(0, "random", [1])
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - began < 15
    with pytest.raises(ProcessLookupError):
        os.kill(program.process_id, 0)
    program.close()


CHOICES = {"action": {"choices": [4, 4]}}


def test_whole_numbers_of_any_kind_are_packed() -> None:
    packed = pack(CHOICES, [[1, 2], [3, 0]], 2)
    assert packed == bytes([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0])
    assert pack(CHOICES, [[1.0, 2.0], [3.0, 0.0]], 2) == packed


@pytest.mark.parametrize(("number", "text"), [(2**32, "4294967296"), (3.9, "3.9"), (float("nan"), "nan"), (1e20, "1e")])
def test_numbers_that_a_conversion_would_change_are_refused(number: float, text: str) -> None:
    with pytest.raises(ValueError, match=f"invalid action 1 of environment 1: {text}.* must be a whole number"):
        pack(CHOICES, [[0, 0], [0, number]], 2)


@pytest.mark.parametrize("actions", [["1", "2"], [2**70, 0], [1j, 0]])
def test_what_is_no_number_of_the_program_is_refused(actions: Any) -> None:
    with pytest.raises(ValueError, match=r"invalid actions \[.*must be numbers of 32 bits"):
        pack(CHOICES, actions, 1)
