"""An executor on pymesos's base class: runs each task in its own thread and sends its result as data."""

import sys
import threading
import time

from addict import Dict
from pymesos import Executor, MesosExecutorDriver, decode_data, encode_data


class Echo(Executor):
    """Sends TASK_RUNNING, and TASK_FINISHED with an echo of the task's data."""

    def launchTask(self, driver, task):
        threading.Thread(target=self.work, args=(driver, task), daemon=True).start()

    def work(self, driver, task):
        for state, data in (("TASK_RUNNING", None), ("TASK_FINISHED", task.data)):
            update = Dict()
            update.task_id.value = task.task_id.value
            update.state = state
            update.timestamp = time.time()
            if data is not None:
                update.data = encode_data(b"echo " + decode_data(data))
            driver.sendStatusUpdate(update)


if __name__ == "__main__":
    driver = MesosExecutorDriver(Echo(), use_addict=True)
    driver.run()
    sys.exit(0)
