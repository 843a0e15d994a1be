"""A scheduler on pymesos's base class: twenty tasks, ten of them in an executor, one killed, all reconciled.

usage: pymesos_scheduler.py MASTER
Ends with 0 and the line "all is well" if every task ended as it should.
"""

import os
import sys
import threading

from addict import Dict
from pymesos import MesosSchedulerDriver, Scheduler, decode_data, encode_data

HERE = os.path.dirname(os.path.abspath(__file__))
TASKS = 20
KILLED = "task-0"
TERMINAL = {"TASK_FINISHED", "TASK_FAILED", "TASK_KILLED", "TASK_LOST", "TASK_ERROR", "TASK_DROPPED", "TASK_GONE"}


class Twenty(Scheduler):
    """Launches, kills and reconciles; `done` is set at the end."""

    def __init__(self):
        self.waiting = [f"task-{n}" for n in range(TASKS)]
        self.states, self.data, self.reconciled = {}, {}, set()
        self.reconciling = False
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
        else:
            print(name, state, update.get("message", ""), flush=True)
            self.states[name] = state
            if update.data:
                self.data[name] = decode_data(update.data)
        ended = [n for n, s in self.states.items() if s in TERMINAL]
        if len(ended) == TASKS - 1 and KILLED not in ended and self.states.get(KILLED) == "TASK_RUNNING":
            if not self.reconciling:
                self.reconciling = True
                driver.reconcileTasks([{"task_id": {"value": KILLED}}, {"task_id": {"value": "nobody"}}])
            elif self.reconciled == {KILLED, "nobody"}:
                driver.killTask({"value": KILLED})
        if len(ended) == TASKS:
            self.done.set()

    def error(self, driver, message):
        print("error:", message, flush=True)
        self.done.set()


def main():
    scheduler = Twenty()
    framework = {"user": "root", "name": "pymesos", "hostname": "localhost"}
    driver = MesosSchedulerDriver(scheduler, framework, sys.argv[1], use_addict=True)
    driver.start()
    scheduler.done.wait(300)
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
