"""Programs that learn in the environments. The main one: ``python -m tepui.lab.examples.train --minutes 5``."""
