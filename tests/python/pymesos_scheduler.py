"""A scheduler on pymesos's base class: twenty tasks, ten of them in an executor, one killed, all reconciled.

usage: pymesos_scheduler.py MASTER
Exits with 0 and prints "all is well" if every task has ended in the expected state.
"""

import os
import sys
import threading
from http.client import HTTPException

from addict import Dict
from pymesos import MesosSchedulerDriver, Scheduler, decode_data, encode_data

HERE = os.path.dirname(os.path.abspath(__file__))
TASKS = 20
KILLED = "task-0"
TERMINAL = {"TASK_FINISHED", "TASK_FAILED", "TASK_KILLED", "TASK_LOST", "TASK_ERROR", "TASK_DROPPED", "TASK_GONE"}


class Twenty(Scheduler):
    """Launches, kills and reconciles tasks, and sets `done` at the end."""

    def __init__(self):
        self.waiting = [f"task-{n}" for n in range(TASKS)]
        self.launched, self.states, self.data, self.reconciled = set(), {}, {}, set()
        self.done = threading.Event()

    def registered(self, driver, framework_id, master_info):
        print("registered as", framework_id["value"], flush=True)

    def resourceOffers(self, driver, offers):
        for offer in offers:
            free = {r.name: r.scalar.value for r in offer.resources if r.type == "SCALAR"}
            tasks = []
            while self.waiting and free.get("cpus", 0) >= 0.2 and free.get("mem", 0) >= 64:
                free["cpus"] -= 0.2
                free["mem"] -= 64
                tasks.append(self.task(self.waiting.pop(0), offer))
                self.launched.add(tasks[-1].name)
            driver.launchTasks(offer.id, tasks, {"refuse_seconds": 0.1})

    def task(self, name, offer):
        task = Dict()
        task.task_id.value = task.name = name
        task.agent_id.value = offer.agent_id.value
        task.resources = [
            {"name": "cpus", "type": "SCALAR", "scalar": {"value": 0.1}},
            {"name": "mem", "type": "SCALAR", "scalar": {"value": 32}},
        ]
        if name == KILLED:
            task.command.value = "sleep 1000"
        elif int(name.split("-")[1]) % 2:
            task.data = encode_data(name.encode())
            task.executor.executor_id.value = "echo"
            task.executor.command.value = f"{sys.executable} -W ignore {HERE}/pymesos_executor.py"
            task.executor.resources = task.resources
        else:
            task.command.value = "true"
        return task

    def statusUpdate(self, driver, update):
        name, state = update.task_id.value, update.state
        if update.reason == "REASON_RECONCILIATION":
            self.reconciled.add(name)
            print("reconciled", name, state, flush=True)
            # The master that received the launch failed before it sent it to the agent.
            if state == "TASK_LOST" and name in self.launched and name not in self.states:
                self.launched.remove(name)
                self.waiting.append(name)
        else:
            print(name, state, update.get("message", ""), flush=True)
            self.states[name] = state
            if update.data:
                self.data[name] = decode_data(update.data)
        if len(self.ended()) == TASKS:
            self.done.set()

    def ended(self):
        return [n for n, s in self.states.items() if s in TERMINAL]

    def go_on(self, driver):
        """Repeats calls that may be lost with a failed master."""
        silent = self.launched - self.states.keys()
        if silent:
            driver.reconcileTasks([{"task_id": {"value": name}} for name in silent])
        if len(self.ended()) < TASKS - 1 or self.states.get(KILLED) != "TASK_RUNNING":
            return
        if {KILLED, "nobody"} <= self.reconciled:
            driver.killTask({"value": KILLED})
        else:
            driver.reconcileTasks([{"task_id": {"value": KILLED}}, {"task_id": {"value": "nobody"}}])

    def error(self, driver, message):
        print("error:", message, flush=True)
        self.done.set()


def main():
    scheduler = Twenty()
    framework = {"user": "root", "name": "pymesos", "hostname": "localhost"}
    driver = MesosSchedulerDriver(scheduler, framework, sys.argv[1], use_addict=True)
    driver.start()
    for _ in range(300):
        if scheduler.done.wait(1):
            break
        try:
            scheduler.go_on(driver)
        except (OSError, HTTPException) as error:
            print("no answer to a call:", error, flush=True)
    driver.stop()
    driver.join()
    wanted = {f"task-{n}": "TASK_FINISHED" for n in range(TASKS)}
    wanted[KILLED] = "TASK_KILLED"
    wrong = {n: scheduler.states.get(n) for n in wanted if scheduler.states.get(n) != wanted[n]}
    echoed = {f"task-{n}": f"echo task-{n}".encode() for n in range(1, TASKS, 2)}
    if wrong or scheduler.data != echoed:
        print("wrong:", wrong, scheduler.data)
        return 1
    print("all is well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
