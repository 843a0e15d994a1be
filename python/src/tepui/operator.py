"""Operator calls of a master."""

import json
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any

import httpx

from .errors import CallError, TepuiError
from .http import JSON, Masters, post, resolve
from .recordio import Decoder
from .resources import Resource


class Operator:
    """A client that sends operator calls to the leading master.

    *masters* is ``host:port`` or a URL, or several separated by commas, of which one leads; *auth* is a principal and
    its secret.
    """

    def __init__(self, masters: str, *, auth: tuple[str, str] | None = None) -> None:
        self._masters = Masters(masters)
        self._base: str | None = None
        self._client = httpx.AsyncClient(auth=auth, timeout=30)

    async def __aenter__(self) -> "Operator":  # noqa: PYI034 (typing.Self needs Python 3.11)
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
        for _ in range(2):
            base = self._base or await self._masters.find(self._client)
            try:
                self._base, answer = await post(self._client, base, "/api/v1", message, {})
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                refused = error  # The call has not been sent: another master may lead now.
                self._base = None
            except CallError as error:
                if error.status == 503:
                    self._base = None
                raise
            else:
                return answer.get(kind.lower()) if answer else None
        raise TepuiError(f"no master answers: {refused}") from refused

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
        """Tear down a framework and kill its tasks."""
        await self.call("TEARDOWN", {"framework_id": {"value": framework_id}})

    async def quota(self) -> Any:
        """Return the answer of GET_QUOTA."""
        return await self.call("GET_QUOTA")

    async def weights(self) -> Any:
        """Return the answer of GET_WEIGHTS."""
        return await self.call("GET_WEIGHTS")

    async def maintenance_status(self) -> Any:
        """Return the answer of GET_MAINTENANCE_STATUS."""
        return await self.call("GET_MAINTENANCE_STATUS")

    async def maintenance_schedule(self) -> Any:
        """Return the answer of GET_MAINTENANCE_SCHEDULE."""
        return await self.call("GET_MAINTENANCE_SCHEDULE")

    async def update_quota(self, configs: list[dict[str, Any]]) -> None:
        """Set the quota of roles. *configs* are QuotaConfigs."""
        await self.call("UPDATE_QUOTA", {"quota_configs": configs})

    async def update_weights(self, weights: dict[str, float]) -> None:
        """Set the weights of roles."""
        infos = [{"role": role, "weight": weight} for role, weight in weights.items()]
        await self.call("UPDATE_WEIGHTS", {"weight_infos": infos})

    async def reserve(self, agent_id: str, resources: list[Resource]) -> None:
        """Reserve *resources*, which carry their reservations."""
        await self.call("RESERVE_RESOURCES", {"agent_id": {"value": agent_id}, "resources": resources})

    async def unreserve(self, agent_id: str, resources: list[Resource]) -> None:
        """Unreserve *resources*."""
        await self.call("UNRESERVE_RESOURCES", {"agent_id": {"value": agent_id}, "resources": resources})

    async def create_volumes(self, agent_id: str, volumes: list[Resource]) -> None:
        """Create persistent volumes."""
        await self.call("CREATE_VOLUMES", {"agent_id": {"value": agent_id}, "volumes": volumes})

    async def destroy_volumes(self, agent_id: str, volumes: list[Resource]) -> None:
        """Destroy persistent volumes."""
        await self.call("DESTROY_VOLUMES", {"agent_id": {"value": agent_id}, "volumes": volumes})

    async def update_maintenance_schedule(self, schedule: dict[str, Any]) -> None:
        """Replace the maintenance schedule."""
        await self.call("UPDATE_MAINTENANCE_SCHEDULE", {"schedule": schedule})

    async def drain(self, agent_id: str, *, mark_gone: bool = False) -> None:
        """Drain an agent: kill its tasks and stop offers of it."""
        await self.call("DRAIN_AGENT", {"agent_id": {"value": agent_id}, "mark_gone": mark_gone})

    async def deactivate(self, agent_id: str) -> None:
        """Stop offers of an agent."""
        await self.call("DEACTIVATE_AGENT", {"agent_id": {"value": agent_id}})

    async def reactivate(self, agent_id: str) -> None:
        """End :meth:`drain` or :meth:`deactivate`."""
        await self.call("REACTIVATE_AGENT", {"agent_id": {"value": agent_id}})

    async def mark_gone(self, agent_id: str) -> None:
        """Mark an agent as gone; it cannot register again."""
        await self.call("MARK_AGENT_GONE", {"agent_id": {"value": agent_id}})

    async def policies(self) -> Any:
        """Return the answer of GET_POLICIES, a call of tepui's own."""
        return await self.call("GET_POLICIES")

    async def update_policies(self, policies: dict[str, Any]) -> None:
        """Replace the allocation policies, with a call of tepui's own."""
        await self.call("UPDATE_POLICIES", {"policies": policies})

    async def explain(self, framework: str, role: str | None = None, need: str | None = None) -> Any:
        """Return why a framework, given by id or name, has no or few offers, by a call of tepui's own.

        With ``need``, such as ``"cpus:1;mem:64"``, smaller offers do not count.
        """
        fields = {"framework": framework, "role": role, "need": need}
        return await self.call("EXPLAIN", {name: value for name, value in fields.items() if value is not None})

    async def kill_task(self, framework_id: str, task_id: str) -> None:
        """Kill a task of any framework as the framework's own KILL does, by a call of tepui's own."""
        await self.call("KILL_TASK", {"framework_id": {"value": framework_id}, "task_id": {"value": task_id}})

    async def fairness(self) -> Any:
        """Return the answer of GET_FAIRNESS, a call of tepui's own."""
        return await self.call("GET_FAIRNESS")

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the master's events, the first of which contains its state, until the connection ends.

        Heartbeats are not yielded. Raises :exc:`httpx.ReadTimeout` if the master is silent for 75 seconds.
        """
        base = await self._masters.find(self._client)
        for _ in range(4):
            async with self._client.stream(
                "POST", base + "/api/v1", json={"type": "SUBSCRIBE"}, headers=JSON, timeout=75
            ) as answer:
                if answer.status_code == 307:
                    base = resolve(base, answer.headers["Location"])
                    continue
                if answer.status_code != 200:
                    await answer.aread()
                    raise CallError(answer.status_code, answer.text)
                decoder = Decoder()
                async for data in answer.aiter_bytes():
                    for record in decoder.feed(data):
                        event: dict[str, Any] = json.loads(record)
                        if event["type"] != "HEARTBEAT":
                            yield event
                return
        raise TepuiError("too many redirects: the masters do not agree on a leader")
