"""Addresses of masters and HTTP requests to them."""

import json
from typing import Any

import httpx

from .errors import CallError, TepuiError

JSON = {"Content-Type": "application/json", "Accept": "application/json"}


def base_url(master: str) -> str:
    """Return the URL of *master*, which is ``host:port`` or ``http://host:port``.

    Raises :exc:`TepuiError` for ``zk://``, which this version does not support.
    """
    if master.startswith("zk://"):
        raise TepuiError("zk:// is not supported: give the address of any master, which redirects to the leading one")
    return (master if "://" in master else f"http://{master}").rstrip("/")


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
