"""A scheduler's session with the leading master."""

import asyncio
import base64
import contextlib
import json
import logging
import random
import time
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any

import httpx

from .errors import CallError, ClosedSession, NoLeader, TepuiError
from .http import JSON, Masters, post, resolve
from .recordio import Decoder

Message = dict[str, Any]
_PATH = "/api/v1/scheduler"
_LONGEST_DELAY = 30.0
# Time between searches for the leader. Masters of tepui hold their answers during it.
_SEARCH_DELAY = 1.5
_log = logging.getLogger("tepui")


class Scheduler:
    """A session that yields the master's events and sends calls.

    *masters* is ``host:port`` or a URL, or several separated by commas, of which one leads, *framework* a FrameworkInfo
    (set its ``id`` to fail over from another scheduler), *auth* a principal and its secret. With *acknowledge* the
    session acknowledges a status update after the loop's body has handled it. The session resubscribes with its
    framework id when the connection fails or heartbeats stop. The session and the iteration end at an ERROR event or
    after :meth:`close`.
    """

    def __init__(
        self,
        masters: str,
        framework: Message,
        *,
        auth: tuple[str, str] | None = None,
        acknowledge: bool = True,
    ) -> None:
        self.framework = dict(framework)
        self._masters = Masters(masters)
        self._base = self._masters.bases[0]
        self._client = httpx.AsyncClient(auth=auth, timeout=15)
        self._acknowledge = acknowledge
        self._stream_id: str | None = None
        self._closed = False

    @property
    def framework_id(self) -> str | None:
        """The framework's id, or ``None`` before the first subscription."""
        value: str | None = self.framework.get("id", {}).get("value")
        return value

    async def __aenter__(self) -> "Scheduler":  # noqa: PYI034 (typing.Self needs Python 3.11)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the session. The framework stays registered for its failover timeout."""
        self._closed = True
        self._stream_id = None
        await self._client.aclose()

    async def events(self) -> AsyncIterator[Message]:
        """Yield all events except heartbeats, also after reconnections.

        Raises :exc:`ClosedSession` at an ERROR event, and :exc:`CallError` if the master rejects the subscription.
        """
        delay = 0.5
        while not self._closed:
            began, searched = time.monotonic(), 0.0
            try:
                async for event in self._subscription():
                    delay = 0.5
                    if event["type"] == "ERROR":
                        self._closed = True
                        raise ClosedSession(event["error"]["message"])
                    if event["type"] != "HEARTBEAT":
                        yield event
                        if event["type"] == "UPDATE" and self._acknowledge and self._stream_id:
                            # The agent resends an update whose acknowledgement is lost.
                            with contextlib.suppress(TepuiError):
                                await self.acknowledge(event["update"]["status"])
            except (httpx.TransportError, asyncio.TimeoutError) as error:
                _log.warning("the connection to %s failed: %r", self._base, error)
            except NoLeader as error:
                _log.warning("%s", error)
                delay, searched = min(delay, _SEARCH_DELAY), time.monotonic() - began
            except CallError as error:
                if error.status not in (404, 503):  # no leading master yet, or it is recovering
                    raise
                _log.warning("%s rejects the subscription for now: %s", self._base, error)
            finally:
                self._stream_id = None
            if self._closed:
                return
            # Another master may lead now.
            self._base = self._masters.bases[0]
            await asyncio.sleep(max(0.0, random.uniform(delay / 2, delay) - searched))
            delay = min(delay * 2, _LONGEST_DELAY)

    async def _subscription(self) -> AsyncIterator[Message]:
        call: Message = {"type": "SUBSCRIBE", "subscribe": {"framework_info": self.framework}}
        if self.framework_id:
            call["framework_id"] = self.framework["id"]
        self._base = await self._masters.find(self._client)
        for _ in range(4):
            request = self._client.build_request(
                "POST", self._base + _PATH, content=json.dumps(call), headers=JSON, timeout=httpx.Timeout(15, read=None)
            )
            answer = await asyncio.wait_for(self._client.send(request, stream=True), 15)
            try:
                if answer.status_code == 307:
                    self._base = resolve(self._base, answer.headers["Location"])
                    continue
                if answer.status_code != 200:
                    await answer.aread()
                    raise CallError(answer.status_code, answer.text)
                self._stream_id = answer.headers["Mesos-Stream-Id"]
                silence = 75.0
                decoder = Decoder()
                pieces = answer.aiter_bytes()
                while True:
                    try:
                        data = await asyncio.wait_for(anext(pieces), silence)
                    except StopAsyncIteration:
                        return
                    for record in decoder.feed(data):
                        event: Message = json.loads(record)
                        if event["type"] == "SUBSCRIBED":
                            self.framework["id"] = event["subscribed"]["framework_id"]
                            silence = 5 * float(event["subscribed"].get("heartbeat_interval_seconds", 15))
                        yield event
            finally:
                await answer.aclose()
        raise httpx.ConnectError("too many redirects")

    async def call(self, kind: str, body: Message | None = None) -> None:
        """Send the call *kind* with *body*. Raises :exc:`ClosedSession` without a subscription."""
        if self._closed or self._stream_id is None:
            raise ClosedSession(f"{kind} needs a subscription: wait for the SUBSCRIBED event")
        message: Message = {"type": kind, "framework_id": self.framework["id"]}
        if body is not None:
            message[kind.lower()] = body
        try:
            await post(self._client, self._base, _PATH, message, {"Mesos-Stream-Id": self._stream_id})
        except httpx.TransportError as error:
            raise TepuiError(f"cannot send {kind}: {error!r}") from error

    async def accept(self, offers: list[Message], operations: list[Message], refuse_seconds: float = 5) -> None:
        """Accept *offers* of one agent with *operations*. The rest is declined for *refuse_seconds*."""
        ids = [offer["id"] for offer in offers]
        filters = {"refuse_seconds": refuse_seconds}
        await self.call("ACCEPT", {"offer_ids": ids, "operations": operations, "filters": filters})

    async def launch(self, offer: Message, tasks: list[Message]) -> None:
        """Launch *tasks* on *offer*, whose agent id is set in each task."""
        infos = [{"agent_id": offer["agent_id"]} | task for task in tasks]
        await self.accept([offer], [{"type": "LAUNCH", "launch": {"task_infos": infos}}])

    async def decline(self, offers: list[Message], refuse_seconds: float = 5) -> None:
        """Decline *offers* for *refuse_seconds*."""
        ids = [offer["id"] for offer in offers]
        await self.call("DECLINE", {"offer_ids": ids, "filters": {"refuse_seconds": refuse_seconds}})

    async def acknowledge(self, status: Message) -> None:
        """Acknowledge a status update. An update without a UUID needs no acknowledgement."""
        if status.get("uuid"):
            fields = ("agent_id", "task_id", "uuid")
            await self.call("ACKNOWLEDGE", {field: status[field] for field in fields})

    async def kill(self, task_id: str, agent_id: str | None = None) -> None:
        """Kill a task."""
        body: Message = {"task_id": {"value": task_id}}
        await self.call("KILL", body | ({"agent_id": {"value": agent_id}} if agent_id else {}))

    async def reconcile(self, task_ids: list[str] | None = None) -> None:
        """Request the state of the tasks, or of all tasks."""
        await self.call("RECONCILE", {"tasks": [{"task_id": {"value": task}} for task in task_ids or []]})

    async def message(self, agent_id: str, executor_id: str, data: bytes) -> None:
        """Send *data* to an executor."""
        ids = {"agent_id": {"value": agent_id}, "executor_id": {"value": executor_id}}
        await self.call("MESSAGE", ids | {"data": base64.b64encode(data).decode()})

    async def revive(self) -> None:
        """Remove the offer filters."""
        await self.call("REVIVE")

    async def suppress(self) -> None:
        """Stop offers until :meth:`revive`."""
        await self.call("SUPPRESS")

    async def teardown(self) -> None:
        """Tear down the framework, which kills its tasks, and end the session."""
        await self.call("TEARDOWN")
        self._closed = True
