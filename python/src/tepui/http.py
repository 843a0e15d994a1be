"""Addresses of masters and HTTP requests to them."""

import asyncio
import json
from typing import Any

import httpx

from .errors import CallError, NoLeader, TepuiError

JSON = {"Content-Type": "application/json", "Accept": "application/json"}
# How long a master of a list may take to say which one leads, in seconds.
_PATIENCE = 5.0


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


async def find_leader(client: httpx.AsyncClient, bases: list[str]) -> str:
    """Return the URL of the master that leads: the only one of *bases*, or the first one that confirms that it leads.

    Raises :exc:`NoLeader` if none does.
    """
    if len(bases) == 1:
        return bases[0]

    async def ask(first: str) -> str:
        base = first
        try:
            for _ in range(4):
                answer = await asyncio.wait_for(client.get(base + "/redirect", auth=None), _PATIENCE)
                if answer.status_code != 307:
                    raise CallError(answer.status_code, answer.text)
                named = resolve(base, answer.headers["Location"])
                own = answer.headers.get("Tepui-Master")
                if named == base or (own is not None and own == answer.headers.get("Tepui-Leader")):
                    return base
                base = named
        except (httpx.HTTPError, httpx.InvalidURL, asyncio.TimeoutError, CallError, KeyError) as error:
            raise NoLeader(f"{first}: {error!r}") from error
        raise NoLeader(f"{first}: the masters do not agree on a leader")

    questions = [asyncio.ensure_future(ask(base)) for base in bases]
    problems = []
    try:
        for question in asyncio.as_completed(questions):
            try:
                return await question
            except NoLeader as error:
                problems.append(str(error))
    finally:
        for task in questions:
            task.cancel()
        await asyncio.gather(*questions, return_exceptions=True)
    raise NoLeader(f"no master leads: {'; '.join(problems)}")


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
