"""Addresses of masters and HTTP requests to them."""

import asyncio
import json
from typing import Any

import httpx

from .errors import CallError, NoLeader, TepuiError

JSON = {"Content-Type": "application/json", "Accept": "application/json"}
# Timeout of the request for the leader to a master of a list, in seconds.
_PATIENCE = 5.0
# How long a master may hold its answer while no other master leads, in milliseconds.
_HOLD = 2000


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


class Masters:
    """The masters of a cluster. Finds the one that leads.

    Masters of tepui hold their answer until a master leads that is not the last known one, for two seconds at most.
    Those of Mesos answer at once.
    """

    def __init__(self, masters: str) -> None:
        self.bases = base_urls(masters)
        # The PID of the last known leader, also if only another master has named it.
        self._previous: str | None = None

    async def find(self, client: httpx.AsyncClient) -> str:
        """Return the URL of the master that leads: the only one, or the first one that confirms that it leads.

        Raises :exc:`NoLeader` if none does.
        """
        if len(self.bases) == 1:
            return self.bases[0]
        previous = self._previous
        try:
            return await self._ask_all(client)
        except NoLeader:
            # The named leader may have exited a moment ago.
            if self._previous == previous:
                raise
            return await self._ask_all(client)

    async def _ask_all(self, client: httpx.AsyncClient) -> str:
        headers = {"Tepui-Wait": str(_HOLD)}
        if self._previous is not None:
            headers["Tepui-Previous-Leader"] = self._previous
        questions = [asyncio.ensure_future(self._ask(client, base, headers)) for base in self.bases]
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

    async def _ask(self, client: httpx.AsyncClient, first: str, headers: dict[str, str]) -> str:
        base = first
        try:
            for _ in range(4):
                request = client.get(base + "/redirect", auth=None, headers=headers)
                answer = await asyncio.wait_for(request, _PATIENCE)
                if answer.status_code != 307:
                    raise CallError(answer.status_code, answer.text)
                named = resolve(base, answer.headers["Location"])
                own, leader = answer.headers.get("Tepui-Master"), answer.headers.get("Tepui-Leader")
                self._previous = leader or self._previous
                if named == base or (own is not None and own == leader):
                    return base
                base = named
        except (httpx.HTTPError, httpx.InvalidURL, asyncio.TimeoutError, CallError, KeyError) as error:
            raise NoLeader(f"{first}: {error!r}") from error
        raise NoLeader(f"{first}: the masters do not agree on a leader")


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
