"""Runs the unmodified Python client of Marathon from PyPI against the bin-packing framework: the life cycle of apps.

Usage: marathon_client.py http://HOST:PORT
"""

import collections
import collections.abc
import sys
import threading
import time

# The client is older than Python 3.10, which removed this name.
collections.Iterable = collections.abc.Iterable

import marathon  # noqa: E402
from marathon import MarathonClient, MarathonHttpError  # noqa: E402
from marathon.models import MarathonApp, MarathonConstraint, MarathonHealthCheck  # noqa: E402
from marathon.models.app import PortDefinition  # noqa: E402
from marathon.models.events import MarathonDeploymentSuccess, MarathonStatusUpdateEvent  # noqa: E402

# The client warns of health checks in a form that it creates itself, and prints errors that are expected here.
marathon.log.setLevel("CRITICAL")
client = MarathonClient(sys.argv[1], timeout=120)
SLEEP = "sleep 1000"


def until(what, reached, seconds=180):
    """Waits for a state. Fails with the name *what* after a timeout."""
    end = time.monotonic() + seconds
    while True:
        value = reached()
        if value:
            return value
        assert time.monotonic() < end, what
        time.sleep(0.05)


def deployed(answer):
    """Waits until the deployment of an answer has ended."""
    assert answer["version"] and answer["deploymentId"], answer
    until("the end of " + str(answer), lambda: answer["deploymentId"] not in [d.id for d in client.list_deployments()])


def settled(app_id, instances):
    def reached():
        app = client.get_app(app_id)
        return not app.deployments and app.tasks_running == instances and app
    return until(f"{instances} of {app_id}", reached)


def refused(status, call):
    try:
        call()
    except MarathonHttpError as error:
        assert error.status_code == status, error
        return error
    raise AssertionError(f"{status} was expected")


def collect(seen, types):
    for event in client.event_stream(event_types=types):
        seen.append(event)


# Server information.
assert client.ping() == b"pong"
info = client.get_info()
until("a framework id", lambda: client.get_info().framework_id)
assert info.elected and info.name == "marathon", info
assert client.get_leader()["leader"] in sys.argv[1]
until("metrics", lambda: client.get_metrics()["counters"])
assert client.list_apps() == [] and client.list_deployments() == []

seen = []
threading.Thread(target=collect, args=(seen, [MarathonDeploymentSuccess, MarathonStatusUpdateEvent]), daemon=True).start()

# Create, list, get.
web = client.create_app("/prod/web", MarathonApp(
    cmd=SLEEP, mem=16, cpus=0.1, instances=2, env={"COLOUR": "red"}, labels={"team": "x"},
    port_definitions=[PortDefinition(port=10105, protocol="tcp", name="http")],
    constraints=[MarathonConstraint("hostname", "LIKE", ".*")],
    health_checks=[MarathonHealthCheck(protocol="COMMAND", command="true", interval_seconds=1, grace_period_seconds=60)]))
assert web.id == "/prod/web" and web.instances == 2 and web.deployments and web.env == {"COLOUR": "red"}, web
refused(409, lambda: client.create_app("/prod/web", MarathonApp(cmd=SLEEP)))
web = settled("/prod/web", 2)
until("health", lambda: client.get_app("/prod/web").tasks_healthy == 2)
assert [c.json_repr() for c in web.constraints] == [["hostname", "LIKE", ".*"]]
assert web.ports == [10105] and web.port_definitions[0].name == "http"
tasks = client.list_tasks("/prod/web")
assert {t.state for t in tasks} == {"TASK_RUNNING"} and all(t.app_id == "/prod/web" and t.started_at for t in tasks)
assert all(len(t.ports) == 1 and t.health_check_results[0].alive for t in tasks), tasks
assert {e.task_port for e in client.list_endpoints()} == {t.ports[0] for t in tasks}
assert [a.id for a in client.list_apps(label="team==x", embed_tasks=True)] == ["/prod/web"]
assert client.list_apps(label="team!=x") == [] and client.list_apps(app_id="nothing") == []
assert client.list_apps(cmd="sleep")[0].tasks == []

# Scale up and down, by number and by difference.
deployed(client.scale_app("/prod/web", instances=3))
settled("/prod/web", 3)
deployed(client.scale_app("/prod/web", delta=-2))
one = settled("/prod/web", 1)

# Update: a new version replaces the old one, and can be rolled back.
old = client.get_app("/prod/web")
deployed(client.update_app("/prod/web", MarathonApp(env={"COLOUR": "blue"})))
new = settled("/prod/web", 1)
assert new.env == {"COLOUR": "blue"} and new.version != old.version and new.cmd == SLEEP
assert client.list_tasks("/prod/web")[0].id not in [t.id for t in old.tasks]
assert client.list_versions("/prod/web")[:2] == [new.version, old.version]
assert client.get_version("/prod/web", old.version).env == {"COLOUR": "red"}
deployed(client.rollback_app("/prod/web", old.version))
assert settled("/prod/web", 1).env == {"COLOUR": "red"}

# Read, change one field, and write back whole: only that field changes, and no task is replaced.
before = {t.id for t in client.list_tasks("/prod/web")}
whole = client.get_app("/prod/web")
whole.instances = 2
deployed(client.update_app("/prod/web", whole, minimal=False))
again = settled("/prod/web", 2)
assert before < {t.id for t in client.list_tasks("/prod/web")}, "tasks were replaced"
for field in ["cmd", "env", "labels", "ports", "port_definitions", "uris", "fetch", "constraints", "health_checks"]:
    was, now = getattr(whole, field), getattr(again, field)
    show = lambda value: [getattr(v, "json_repr", lambda v=v: v)() for v in value] if isinstance(value, list) else value
    assert show(was) == show(now), (field, was, now)
whole = client.get_app("/prod/web")
whole.instances = 1
deployed(client.update_app("/prod/web", whole))
settled("/prod/web", 1)

# Restart and kill.
before = {t.id for t in client.list_tasks("/prod/web")}
deployed(client.restart_app("/prod/web"))
after = {t.id for t in client.list_tasks("/prod/web")}
assert not before & after, (before, after)
victim = after.pop()
assert client.kill_task("/prod/web", victim).id == victim
until("a replacement", lambda: [t.id for t in client.list_tasks("/prod/web") if t.state == "TASK_RUNNING" and t.id != victim])
deployed(client.scale_app("/prod/web", instances=3, force=True))
settled("/prod/web", 3)
ids = sorted(t.id for t in client.list_tasks("/prod/web"))
deployed(client.kill_task("/prod/web", ids[0], scale=True))
settled("/prod/web", 2)
assert client.kill_given_tasks(ids[1:2])
until("a replacement", lambda: ids[1] not in [t.id for t in client.list_tasks("/prod/web")])
settled("/prod/web", 2)
refused(404, lambda: client.kill_task("/prod/web", "no-such-task"))

# Several at once. An app that does not fit waits in the queue until its deployment is cancelled.
deployed(client.update_apps([MarathonApp(id="/a", cmd=SLEEP, cpus=0.1, mem=16), MarathonApp(id="/b", args=["/bin/sleep", "1000"], cpus=0.1, mem=16)]))
assert [a.id for a in client.list_apps()] == ["/a", "/b", "/prod/web"]
client.create_app("/huge", MarathonApp(cmd=SLEEP, cpus=1000))
refused(409, lambda: client.update_app("/huge", MarathonApp(mem=20)))
queued = until("the queue", lambda: client.list_queue())
assert queued[0].app.id == "/huge" and queued[0].count == 1
deployment = next(d for d in client.list_deployments() if d.affected_apps == ["/huge"])
assert deployment.current_actions[0].action == "StartApplication" and deployment.total_steps == 1
client.delete_deployment(deployment.id)
until("the end of /huge", lambda: "/huge" not in [a.id for a in client.list_apps()])

# Invalid requests are rejected, with the item and the reason.
assert refused(422, lambda: client.create_app("/x", MarathonApp(cmd=SLEEP, dependencies=["/a"]))).error_details
assert refused(422, lambda: client.create_app("/x", MarathonApp(cpus=0.1))).error_details
refused(404, lambda: client.get_app("/nothing"))
refused(404, lambda: client.delete_app("/nothing"))

# Delete everything.
for app in ["/a", "/b", "/prod/web"]:
    deployed(client.delete_app(app))
assert client.list_apps() == [] and client.list_tasks() == []
until("an event of a deployment", lambda: [e for e in list(seen) if isinstance(e, MarathonDeploymentSuccess)])
until("events of tasks", lambda: {"TASK_RUNNING", "TASK_KILLED"} <= {
    e.task_status for e in list(seen) if isinstance(e, MarathonStatusUpdateEvent)})
print("all is well")
