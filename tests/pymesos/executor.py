"""An executor on pymesos: finishes each task at once, but for those that are told to wait until they are killed."""

import sys

from pymesos import Executor, MesosExecutorDriver, decode_data, encode_data


class Quick(Executor):
    def registered(self, driver, executor_info, framework_info, agent_info):
        driver.sendFrameworkMessage(encode_data(b"hello"))

    def launchTask(self, driver, task):
        self.update(driver, task["task_id"], "TASK_RUNNING")
        if decode_data(task["data"]) == b"run":
            self.update(driver, task["task_id"], "TASK_FINISHED", b"done " + task["task_id"]["value"].encode())

    def killTask(self, driver, task_id):
        self.update(driver, task_id, "TASK_KILLED")

    @staticmethod
    def update(driver, task_id, state, data=b""):
        driver.sendStatusUpdate({"task_id": task_id, "state": state, "data": encode_data(data)})


if __name__ == "__main__":
    driver = MesosExecutorDriver(Quick())
    driver.run()
    sys.exit(0)
