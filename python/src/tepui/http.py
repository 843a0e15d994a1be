"""Addresses of masters and HTTP requests to them."""

import json
from typing import Any

import httpx

from .errors import CallError, TepuiError

JSON = {"Content-Type": "application/json", "Accept": "application/json"}


def base_urls(masters: str) -> list[str]:
    """Return the URLs of *masters*: ``host:port`` or ``http://host:port``, several separated by commas.

    Raises :exc:`TepuiError` for ``zk://``, which this version does not support.
    """
    if masters.startswith("zk://"):
        raise TepuiError("zk:// is not supported: give the addresses of the masters, which redirect to the leading one")
    names = [name.strip() for name in masters.split(",") if name.strip()]
    if not names:
        raise TepuiError("no master is given: give its address, such as 127.0.0.1:5050")
    return [(name if "://" in name else f"http://{name}").rstrip("/") for name in names]


def resolve(base: str, location: str) -> str:
    """Return the scheme and authority that a redirect to *location* leads to, from the master *base*."""
    target = httpx.URL(base).join(location)
    return f"{target.scheme}://{target.netloc.decode()}"


async def post(
    client: httpx.AsyncClient, base: str, path: str, call: dict[str, Any], headers: dict[str, str]
) -> tuple[str, Any]:
    """Send *call*, follow redirects to the leading master, and return its URL and the decoded answer."""
    for _ in range(4):
        answer = await client.post(base + path, content=json.dumps(call), headers=JSON | headers)
        if answer.status_code == 307:
            base = resolve(base, answer.headers["Location"])
            continue
        if answer.status_code >= 300:
            raise CallError(answer.status_code, answer.text)
        return base, answer.json() if answer.content else None
    raise TepuiError("too many redirects: the masters do not agree on a leader")
