"""Tests sessions with masters that redirect, reject calls, stop sending, and close connections."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import tepui

Handler = Callable[[dict[str, str], dict[str, Any], asyncio.StreamWriter], Awaitable[None]]
FRAMEWORK = {"user": "root", "name": "test"}


class Master:
    """An HTTP server on a free port that passes each call to *handler* and then closes the connection.

    It names *leader* as the leading master: itself if that is ``None``, none if it is empty. It holds a request with
    ``Tepui-Wait`` until *elected* is set.
    """

    def __init__(self, handler: Handler, leader: str | None = None, elected: asyncio.Event | None = None) -> None:
        self._handler = handler
        self._leader = leader
        self._elected = elected
        # The headers of the requests for the leader.
        self.asked: list[dict[str, str]] = []

    async def __aenter__(self) -> "Master":  # noqa: PYI034 (typing.Self needs Python 3.11)
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        if first.startswith("GET /redirect "):
            self.asked.append(headers)
            if self._elected is not None and "tepui-wait" in headers:
                await self._elected.wait()
            leader = self.address if self._leader is None else self._leader
            status = "307 Temporary Redirect" if leader else "503 Service Unavailable"
            pids = f"Tepui-Master: master@{self.address}", f"Tepui-Leader: master@{leader}"
            head(writer, status, f"Location: //{leader}", *(pids if leader else ()), "Content-Length: 0")
            writer.close()
            return
        call = json.loads(await reader.readexactly(int(headers["content-length"])))
        await self._handler(headers, call, writer)
        writer.close()


def head(writer: asyncio.StreamWriter, status: str, *headers: str) -> None:
    writer.write("\r\n".join([f"HTTP/1.1 {status}", *headers, "Connection: close", "", ""]).encode())


def record(writer: asyncio.StreamWriter, event: dict[str, Any]) -> None:
    text = json.dumps(event).encode()
    writer.write(b"%d\n%s" % (len(text), text))


def subscribed(writer: asyncio.StreamWriter, interval: float = 15) -> None:
    head(writer, "200 OK", "Mesos-Stream-Id: s", "Content-Type: application/json")
    part = {"framework_id": {"value": "f"}, "heartbeat_interval_seconds": interval}
    record(writer, {"type": "SUBSCRIBED", "subscribed": part})


async def two_events(masters: str, **options: Any) -> tuple[list[str], tepui.Scheduler]:
    """Return the types of the first two events of a session."""
    types = []
    async with tepui.Scheduler(masters, FRAMEWORK, **options) as scheduler:
        async for event in scheduler.events():
            types.append(event["type"])
            if len(types) == 2:
                break
    return types, scheduler


def run(test: Awaitable[Any]) -> Any:
    return asyncio.run(asyncio.wait_for(test, 60))


def test_a_scheduler_follows_redirects_and_resubscribes_with_its_id() -> None:
    calls: list[tuple[dict[str, str], dict[str, Any]]] = []

    async def leads(headers: dict[str, str], call: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        calls.append((headers, call))
        subscribed(writer)

    async def test() -> None:
        async with Master(leads) as leader:

            async def follows(_: dict[str, str], __: dict[str, Any], writer: asyncio.StreamWriter) -> None:
                head(
                    writer,
                    "307 Temporary Redirect",
                    f"Location: //{leader.address}/api/v1/scheduler",
                    "Content-Length: 0",
                )

            async with Master(follows) as other:
                types, scheduler = await two_events(other.address, auth=("ann", "secret"))
        assert types == ["SUBSCRIBED", "SUBSCRIBED"]
        assert scheduler.framework_id == "f"

    run(test())
    assert "framework_id" not in calls[0][1]
    assert calls[1][1]["framework_id"] == {"value": "f"}
    assert all(headers["authorization"] == "Basic YW5uOnNlY3JldA==" for headers, _ in calls)


def test_a_scheduler_goes_to_the_next_master() -> None:
    async def leads(_: dict[str, str], __: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        subscribed(writer)

    async def waits(_: dict[str, str], __: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        head(writer, "503 Service Unavailable", "Content-Length: 0")

    async def test() -> None:
        async with Master(leads) as leader, Master(waits, "") as other, Master(waits, leader.address) as follower:
            for masters in (f"{other.address},{leader.address}", f"{other.address},{follower.address}"):
                types, _ = await two_events(f"127.0.0.1:1,{masters}")
                assert types == ["SUBSCRIBED", "SUBSCRIBED"]

    run(test())


def test_masters_hold_requests_until_another_one_leads() -> None:
    async def leads(_: dict[str, str], __: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        subscribed(writer)

    async def test() -> None:
        elected = asyncio.Event()
        async with Master(leads) as leader, Master(leads, leader.address, elected) as follower:
            session = asyncio.ensure_future(two_events(f"127.0.0.1:1,{follower.address}"))
            while not follower.asked:
                await asyncio.sleep(0.01)
            assert not leader.asked
            elected.set()
            types, _ = await session
            assert types == ["SUBSCRIBED", "SUBSCRIBED"]
        # The second search excludes the leader that the first one found.
        waits = [headers["tepui-wait"] for headers in follower.asked + leader.asked]
        previous = [headers.get("tepui-previous-leader") for headers in follower.asked]
        assert waits == ["2000"] * 4
        assert previous == [None, f"master@{leader.address}"]

    run(test())


def test_a_leader_that_died_is_searched_for_again() -> None:
    async def answers(_: dict[str, str], call: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        head(writer, "200 OK", "Content-Length: 2")
        writer.write(b"{}")

    async def test() -> None:
        async with Master(answers, "127.0.0.1:1") as first, Master(answers, "127.0.0.1:1") as second:
            async with tepui.Operator(f"{first.address},{second.address}") as operator:
                with pytest.raises(tepui.NoLeader):
                    await operator.call("GET_HEALTH")
            previous = [headers.get("tepui-previous-leader") for headers in first.asked]
            assert previous == [None, "master@127.0.0.1:1"]

    run(test())


def test_a_silent_master_is_left() -> None:
    async def silent(_: dict[str, str], __: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        subscribed(writer, interval=0.02)
        await writer.drain()
        await asyncio.sleep(20)

    async def test() -> None:
        async with Master(silent) as master:
            types, _ = await two_events(master.address)
            assert types == ["SUBSCRIBED", "SUBSCRIBED"]

    run(test())


def test_a_rejected_subscription_and_an_error_event_end_the_session() -> None:
    async def rejects(_: dict[str, str], __: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        head(writer, "401 Unauthorized", "Content-Length: 2")
        writer.write(b"no")

    async def fails(_: dict[str, str], __: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        subscribed(writer)
        record(writer, {"type": "ERROR", "error": {"message": "Framework has been removed"}})

    async def test() -> None:
        async with Master(rejects) as master:
            with pytest.raises(tepui.CallError, match="401: no"):
                await two_events(master.address)
        async with Master(fails) as master:
            with pytest.raises(tepui.ClosedSession, match="removed"):
                await two_events(master.address)

    run(test())


def test_operator_calls_go_to_a_master_that_answers() -> None:
    async def answers(_: dict[str, str], call: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        body = json.dumps({"type": call["type"], call["type"].lower(): {"healthy": True}}).encode()
        head(writer, "200 OK", f"Content-Length: {len(body)}")
        writer.write(body)

    async def test() -> None:
        async with Master(answers) as master, tepui.Operator(f"127.0.0.1:1,{master.address}") as operator:
            assert await operator.call("GET_HEALTH") == {"healthy": True}
        async with Master(answers, "") as other, tepui.Operator(f"127.0.0.1:1,{other.address}") as operator:
            with pytest.raises(tepui.NoLeader, match=f"{other.address}.*503"):
                await operator.call("GET_HEALTH")
        async with tepui.Operator("127.0.0.1:1") as operator:
            with pytest.raises(tepui.TepuiError, match="no master answers"):
                await operator.call("GET_HEALTH")

    run(test())
