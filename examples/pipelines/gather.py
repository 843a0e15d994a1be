"""Reads the results of all tasks. Prints their number and the first parameter whose map does not converge."""

import pathlib
import sys

lines = [line.split() for file in sorted(pathlib.Path(sys.argv[1]).iterdir()) for line in file.read_text().splitlines()]
unsettled = [float(growth) for growth, distance in lines if float(distance) > 0.01]
print(f"{len(lines)} parameters, unsettled from {min(unsettled):.3f} on")
