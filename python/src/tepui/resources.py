"""Resources in the JSON form of the v1 API."""

from collections.abc import Iterable
from typing import Any

Resource = dict[str, Any]


def scalar(name: str, value: float) -> Resource:
    """Return a scalar resource, such as ``scalar("cpus", 0.5)``."""
    return {"name": name, "type": "SCALAR", "scalar": {"value": value}}


def scalar_sum(resources: Iterable[Resource], name: str) -> float:
    """Return the sum of the scalars *name* ("cpus", "mem", "disk", "gpus"), exact in thousandths."""
    thousandths = (round(float(r["scalar"]["value"]) * 1000) for r in resources if r["name"] == name and "scalar" in r)
    return sum(thousandths) / 1000


def ports(resources: Iterable[Resource]) -> list[tuple[int, int]]:
    """Return the ranges of ports, first and last included, in ascending order."""
    ranges = (g for r in resources if r["name"] == "ports" for g in r.get("ranges", {}).get("range", []))
    return sorted((int(g["begin"]), int(g["end"])) for g in ranges)
