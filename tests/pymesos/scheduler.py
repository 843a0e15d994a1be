"""A scheduler on pymesos, as it comes from PyPI: 20 tasks through its own executor, one killed, all reconciled.

Usage: scheduler.py MASTER (host:port). Prints one line a step; exit status 0 only if everything held.
"""

import getpass
import os
import sys
import threading

from pymesos import MesosSchedulerDriver, Scheduler, decode_data, encode_data

HERE = os.path.dirname(os.path.abspath(__file__))
TASKS = 20
TO_KILL = "task-7"
CPUS, MEM = 0.1, 16
DEADLINE = 60


class Twenty(Scheduler):
    def __init__(self, executor):
        self.executor = executor
        self.waiting = [f"task-{n}" for n in range(TASKS)]
        self.where, self.states, self.data, self.messages = {}, {}, {}, []
        self.reconciled, self.problems, self.done = {}, [], threading.Event()
        self.reconciling = False

    def registered(self, driver, framework_id, master_info):
        print("registered as", framework_id["value"], flush=True)

    def resourceOffers(self, driver, offers):
        for offer in offers:
            amounts = {r["name"]: r["scalar"]["value"] for r in offer["resources"] if "scalar" in r}
            room = min(int(amounts.get("cpus", 0) / CPUS), int(amounts.get("mem", 0) / MEM)) - 2
            batch, self.waiting = self.waiting[:max(room, 0)], self.waiting[max(room, 0):]
            if not batch:
                driver.declineOffer(offer["id"], {"refuse_seconds": 1})
                continue
            for name in batch:
                self.where[name] = offer["agent_id"]
            driver.launchTasks(offer["id"], [self.task(name, offer) for name in batch])

    def task(self, name, offer):
        scalar = lambda n, v: {"name": n, "type": "SCALAR", "scalar": {"value": v}}  # noqa: E731
        return {
            "task_id": {"value": name},
            "agent_id": {"value": offer["agent_id"]["value"]},
            "name": name,
            "executor": self.executor,
            "data": encode_data(b"wait" if name == TO_KILL else b"run"),
            "resources": [scalar("cpus", CPUS), scalar("mem", MEM)],
        }

    def statusUpdate(self, driver, update):
        name, state = update["task_id"]["value"], update["state"]
        if update.get("reason") == "REASON_RECONCILIATION":
            self.reconciled[name] = state
            if len(self.reconciled) == TASKS + 1:
                self.done.set()
            return
        self.states.setdefault(name, []).append(state)
        if state == "TASK_FINISHED":
            self.data[name] = decode_data(update["data"])
        if name == TO_KILL and state == "TASK_RUNNING":
            driver.killTask(update["task_id"])
        ended = [n for n, seen in self.states.items() if seen[-1] in ("TASK_FINISHED", "TASK_KILLED")]
        if state in ("TASK_FAILED", "TASK_LOST", "TASK_ERROR"):
            self.problems.append(f"{name}: {state} {update.get('message')}")
            self.done.set()
        if len(ended) == TASKS and not self.reconciling:
            self.reconciling = True
            asked = [{"task_id": {"value": n}, "agent_id": a} for n, a in self.where.items()]
            driver.reconcileTasks(asked + [{"task_id": {"value": "never-launched"}}])

    def frameworkMessage(self, driver, executor_id, agent_id, message):
        self.messages.append(decode_data(message))

    def error(self, driver, message):
        self.problems.append(f"error: {message}")
        self.done.set()

    def check(self):
        if self.problems:
            return self.problems
        wrong = []
        for n in range(TASKS):
            name = f"task-{n}"
            want = ["TASK_RUNNING", "TASK_KILLED" if name == TO_KILL else "TASK_FINISHED"]
            if self.states.get(name) != want:
                wrong.append(f"{name}: {self.states.get(name)} instead of {want}")
            if name != TO_KILL and self.data.get(name) != b"done " + name.encode():
                wrong.append(f"{name}: its data is {self.data.get(name)!r}")
        unknown = [n for n in list(self.where) + ["never-launched"] if self.reconciled.get(n) != "TASK_LOST"]
        if unknown:
            wrong.append(f"reconciliation: {self.reconciled}")
        if sorted(self.messages)[:1] != [b"hello"]:
            wrong.append(f"messages of the executor: {self.messages}")
        return wrong


def main(master):
    executor = {
        "executor_id": {"value": "pymesos"},
        "name": "pymesos executor",
        "command": {"value": f"exec {sys.executable} {os.path.join(HERE, 'executor.py')}"},
        "resources": [{"name": "mem", "type": "SCALAR", "scalar": {"value": 32}},
                      {"name": "cpus", "type": "SCALAR", "scalar": {"value": 0.1}}],
    }
    scheduler = Twenty(executor)
    framework = {"user": getpass.getuser(), "name": "twenty", "hostname": "localhost", "checkpoint": True}
    driver = MesosSchedulerDriver(scheduler, framework, master, use_addict=False)
    driver.start()
    in_time = scheduler.done.wait(DEADLINE)
    driver.stop()
    driver.join()
    wrong = scheduler.check()
    if not in_time:
        wrong.insert(0, f"not done after {DEADLINE} s; states: {scheduler.states}")
    for line in wrong:
        print("WRONG", line, flush=True)
    print("19 finished, 1 killed, 21 reconciled" if not wrong else "failed", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
