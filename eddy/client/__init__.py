"""A client of the service: the engine's calls by the same names, over HTTP.

    from eddy.client import Client, AsyncClient, LiveTable

Needs httpx, and pyarrow once tables come or go; never loads the engine.
"""

from __future__ import annotations

from eddy.client.async_client import AsyncClient
from eddy.client.client import Client
from eddy.client.facts import Change, MergeReceipt, Query, Receipt, TableReceipt
from eddy.client.live_table import LiveTable
from eddy.client.problems import UnreachableError

__all__ = ["AsyncClient", "Change", "Client", "LiveTable", "MergeReceipt", "Query", "Receipt", "TableReceipt", "UnreachableError"]
