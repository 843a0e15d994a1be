"""Runs tasks through the package `tepui`: updates, kill, reconciliation, failover of the scheduler, operator calls.

The argument is the master's address.
"""

import asyncio
import sys
from typing import Any

import tepui

RESOURCES = [tepui.scalar("cpus", 0.1), tepui.scalar("mem", 32)]
FRAMEWORK = {"user": "root", "name": "python", "roles": ["*"], "failover_timeout": 60.0,
             "capabilities": [{"type": "MULTI_ROLE"}]}


def task(name: str, command: str) -> dict[str, Any]:
    return {"name": name, "task_id": {"value": name}, "command": {"value": command}, "resources": RESOURCES}


async def first(master: str) -> dict[str, Any]:
    """Launch three short tasks and a long one. Return when the short ones have finished and the long one runs."""
    states: dict[str, str] = {}
    launched = False
    async with tepui.Scheduler(master, FRAMEWORK) as scheduler:
        async for event in scheduler.events():
            if event["type"] == "OFFERS":
                for offer in event["offers"]["offers"]:
                    if launched:
                        await scheduler.decline([offer], refuse_seconds=0.1)
                        continue
                    assert tepui.scalar_sum(offer["resources"], "cpus") >= 0.4
                    launched = True
                    tasks = [task(f"short-{i}", "true") for i in range(3)]
                    await scheduler.launch(offer, [*tasks, task("long", "exec sleep 1000")])
            elif event["type"] == "UPDATE":
                status = event["update"]["status"]
                states[status["task_id"]["value"]] = status["state"]
            if list(states.values()).count("TASK_FINISHED") == 3 and states.get("long") == "TASK_RUNNING":
                return scheduler.framework
    raise AssertionError("the session ended")


async def second(master: str, framework: dict[str, Any]) -> None:
    """Subscribe with the first scheduler's framework id, reconcile, kill the long task, and tear down."""
    reconciled = False
    async with tepui.Scheduler(master, framework) as scheduler:
        async for event in scheduler.events():
            if event["type"] == "SUBSCRIBED":
                await scheduler.reconcile(["long"])
            elif event["type"] == "UPDATE" and event["update"]["status"]["task_id"]["value"] == "long":
                status = event["update"]["status"]
                if status.get("reason") == "REASON_RECONCILIATION" and not reconciled:
                    assert status["state"] == "TASK_RUNNING", status
                    reconciled = True
                    await scheduler.kill("long", status["agent_id"]["value"])
                elif status["state"] == "TASK_KILLED":
                    assert reconciled
                    break
        await scheduler.teardown()
        try:
            await scheduler.revive()
        except tepui.ClosedSession:
            return
    raise AssertionError("a call after the end of the session raises ClosedSession")


async def agent_calls(operator: tepui.Operator, agent_id: str) -> None:
    """Reserve, create a volume and schedule maintenance, undo each of them, and request explanations."""

    async def reserved() -> Any:
        agents = (await operator.agents())["agents"]
        known = next(agent for agent in agents if agent["agent_info"]["id"]["value"] == agent_id)
        return [part for part in known["total_resources"] if part.get("reservations")]

    async def until(wanted: int) -> None:
        while len(await reserved()) != wanted:
            await asyncio.sleep(0.05)

    reservation = {"type": "DYNAMIC", "role": "python"}
    disk = tepui.scalar("disk", 64) | {"reservations": [reservation]}
    await operator.reserve(agent_id, [disk])
    await until(1)
    volume = disk | {"disk": {"persistence": {"id": "v"}, "volume": {"container_path": "v", "mode": "RW"}}}
    await operator.create_volumes(agent_id, [volume])
    while "disk" not in (await reserved())[0]:
        await asyncio.sleep(0.05)
    await operator.destroy_volumes(agent_id, [volume])
    while "disk" in (await reserved())[0]:
        await asyncio.sleep(0.05)
    await operator.unreserve(agent_id, [disk])
    await until(0)

    window = {"machine_ids": [{"hostname": "elsewhere"}], "unavailability": {"start": {"nanoseconds": 10**18}}}
    await operator.update_maintenance_schedule({"windows": [window]})
    assert (await operator.maintenance_schedule())["schedule"]["windows"] == [window]
    assert (await operator.maintenance_status())["status"]["draining_machines"]
    await operator.update_maintenance_schedule({})

    needs_much = (await operator.explain("python", need="cpus:1000"))["explanations"][0]
    assert needs_much["possible_agents"] == 0 and "No agent can offer cpus:1000" in needs_much["text"]
    assert await operator.explain("python")
    try:
        await operator.kill_task("nothing", "task")
    except tepui.CallError as error:
        assert "No framework has the id 'nothing'" in str(error)
    else:
        raise AssertionError("a task of no framework is killed")
    assert await operator.state() and await operator.tasks() and await operator.roles()


async def drained(operator: tepui.Operator, agent_id: str) -> None:
    """Drain an agent without tasks, wait until that is done, and reactivate it."""
    await operator.drain(agent_id)
    while True:
        agents = {agent["agent_info"]["id"]["value"]: agent for agent in (await operator.agents())["agents"]}
        if agents[agent_id].get("drain_info", {}).get("state") == "DRAINED":
            break
        await asyncio.sleep(0.05)
    await operator.reactivate(agent_id)


async def main(master: str) -> None:
    framework = await first(master)
    async with tepui.Operator(master) as operator:
        assert len((await operator.agents())["agents"]) == 2
        assert await operator.policies()
        assert await operator.fairness()
        async for event in operator.events():
            assert event["type"] == "SUBSCRIBED"
            break
        await operator.update_weights({"python": 2.0})
        assert {"role": "python", "weight": 2.0} in (await operator.weights())["weight_infos"]
        limits = {"cpus": {"value": 2.0}}
        await operator.update_quota([{"role": "python", "limits": limits}])
        assert (await operator.quota())["status"]["configs"][0]["limits"] == limits
        agent_id = (await operator.agents())["agents"][0]["agent_info"]["id"]["value"]
        await operator.deactivate(agent_id)
        await operator.reactivate(agent_id)
        await agent_calls(operator, agent_id)
        known = (await operator.frameworks())["frameworks"]
        assert framework["id"] in [entry["framework_info"]["id"] for entry in known]
        await second(master, framework)
        known = (await operator.frameworks()).get("frameworks", [])
        assert framework["id"] not in [entry["framework_info"]["id"] for entry in known]
        await drained(operator, agent_id)
        try:
            await operator.call("NO_SUCH_CALL")
        except tepui.CallError as error:
            assert error.status == 400, error
        else:
            raise AssertionError("an unknown call is an error")
    print("done")


asyncio.run(asyncio.wait_for(main(sys.argv[1]), 60))
