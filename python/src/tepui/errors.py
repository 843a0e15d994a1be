"""Exceptions of the package."""


class TepuiError(Exception):
    """Base class of the package's exceptions."""


class CallError(TepuiError):
    """The master rejected a call. *status* is the HTTP status and *reason* the body of the answer."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"HTTP status {status}: {reason}")
        self.status = status
        self.reason = reason


class NoLeader(TepuiError):
    """No master of the list confirms that it leads. The message names each of them with its answer."""


class ClosedSession(TepuiError):
    """The session has ended or is not subscribed: subscribe before sending calls."""
