"""Programs that learn in the environments. ``python -m tepui.lab.examples.train --minutes 5`` is the first one."""
