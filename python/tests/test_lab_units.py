"""Tests the process of the laboratory's program, with a script in place of tepui."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tepui.lab.program import Program

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
