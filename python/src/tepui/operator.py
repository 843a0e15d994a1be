"""Operator calls of a master."""

from types import TracebackType
from typing import Any

import httpx

from .http import base_url, post


class Operator:
    """Send operator calls to the leading master. *auth* is a principal and its secret."""

    def __init__(self, master: str, *, auth: tuple[str, str] | None = None) -> None:
        self._base = base_url(master)
        self._client = httpx.AsyncClient(auth=auth, timeout=30)

    async def __aenter__(self) -> "Operator":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def call(self, kind: str, body: dict[str, Any] | None = None) -> Any:
        """Send the call *kind* with *body* and return the answer's body, or ``None``."""
        message: dict[str, Any] = {"type": kind}
        if body is not None:
            message[kind.lower()] = body
        _, answer = await post(self._client, self._base, "/api/v1", message, {})
        return answer.get(kind.lower()) if answer else None

    async def state(self) -> Any:
        """Return the answer of GET_STATE."""
        return await self.call("GET_STATE")

    async def agents(self) -> Any:
        """Return the answer of GET_AGENTS."""
        return await self.call("GET_AGENTS")

    async def frameworks(self) -> Any:
        """Return the answer of GET_FRAMEWORKS."""
        return await self.call("GET_FRAMEWORKS")

    async def tasks(self) -> Any:
        """Return the answer of GET_TASKS."""
        return await self.call("GET_TASKS")

    async def roles(self) -> Any:
        """Return the answer of GET_ROLES."""
        return await self.call("GET_ROLES")

    async def teardown(self, framework_id: str) -> None:
        """End a framework and its tasks."""
        await self.call("TEARDOWN", {"framework_id": {"value": framework_id}})
