"""Quotas on a client id: set and taken away, as an operator does with kafka-configs.

Used by broker faults and journeys, through a cluster's plain listener.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from kafka.protocol.admin import AlterClientQuotasRequest

from mirrorspark.errors import LabError
from mirrorspark.lab.raw_log import cluster_client

__all__ = ["set_quotas"]


def set_quotas(bootstrap: str, client_id: str, quotas: Mapping[str, float | None]) -> None:
    """``producer_byte_rate``, ``consumer_byte_rate``, … in bytes a second and broker; None takes one away."""
    entry = AlterClientQuotasRequest.EntryData
    wanted = entry(
        entity=[entry.EntityData(entity_type="client-id", entity_name=client_id)],
        ops=[entry.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in quotas.items()],
    )

    async def ask() -> None:
        client = cluster_client(bootstrap)
        try:
            await client.start()
            answer = await client.request(AlterClientQuotasRequest(entries=[wanted], validate_only=False))
        finally:
            client.close()
        if any(one.error_code for one in answer.entries):
            raise LabError(f"quotas {dict(quotas)} for client id {client_id} were refused on {bootstrap}: {answer}")

    asyncio.run(ask())
