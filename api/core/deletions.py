"""Cancelling all queries with a tag in slices, so that other calls run in between.

    1  which queries they are is settled first, in one look: all that have the tag then, readers before what they read. If anybody
       else reads one of them, the whole is refused and nothing has changed.
    2  each slice is a call of its own (`cancel_many` in `api/core/calls.py`): so many queries, by their ids, all or none, with a
       record of its own. Between two of them others are served.

So no turn of the engine's thread is long, however many queries there are. Queries that come with the tag meanwhile stay, those
that went meanwhile are passed over. After a kill what was recorded is gone and the rest is there. A query that has come to be
read by another one meanwhile ends it: what was cancelled stays so, and the answer says how many.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from api.core.calls import Call, readers_first
from api.core.inbox import BusyError
from eddy import Engine, InUseError

if TYPE_CHECKING:
    from api.core.service import Service

#: Queries of a slice. The dearest to cancel, with operators of their own, take up to 200 us each: a turn of 26 ms.
SLICE = 128
#: Seconds until a slice that found no room in the inbox comes again, at most, and how often it does.
_WAIT = 0.25
_TRIES = 240


def tagged(engine: Engine, tag: str) -> list[int]:
    """Return the ids of the queries with a tag, readers before the queries they read; raise `InUseError` if another query reads
    one."""
    queries = engine.queries.values()
    found = [query for query in queries if tag in query.tags]
    others = [query for query in queries if query.reads and tag not in query.tags]
    names = {query.name.lower() for query in found} if others else set()
    for reader in others:
        if held := names.intersection(reader.reads):
            fact = f'query "{min(held)}" has the tag and is read by query "{reader.name}", which has not'
            raise InUseError(fact, hint="cancel the reader first")
    return [query.id for query in readers_first(found)]


async def delete_tagged(service: Service, tag: str) -> int:
    """Cancel the queries that have a tag now; return their number once all are gone."""
    ids: list[int] = await service.read(lambda core: tagged(core.engine, tag))
    n_cancelled = 0
    for first in range(0, len(ids), SLICE):
        try:
            n_cancelled += await _cancel(service, ids[first : first + SLICE], waits=first > 0)
        except (InUseError, BusyError) as error:
            if first:
                error.detail = f"{n_cancelled} of {len(ids)} queries are cancelled, the others are not"
            raise
    return n_cancelled


async def _cancel(service: Service, ids: Sequence[int], waits: bool) -> int:
    """Cancel a slice of queries; with `waits`, wait up to a minute for room in the inbox."""
    tries = _TRIES if waits else 1
    while True:
        try:
            n_cancelled: int = (await service.ask(Call("cancel_many", {"queries": list(ids)})))["cancelled"]
            return n_cancelled
        except BusyError as busy:
            tries -= 1
            if not tries:
                raise
            await asyncio.sleep(min(busy.retry_after, _WAIT))
