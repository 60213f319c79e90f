"""What one of our clients asks of a cluster, by name: for tests that count requests."""

from __future__ import annotations

from typing import Any

from mirrorspark.cluster.cluster_client import ClusterClient

__all__ = ["requests_sent"]


def requests_sent(client: ClusterClient) -> list[str]:
    """Grows with every schema request that the client sends from now on, e.g. ``CreateTopicsRequest``."""
    names: list[str] = []
    request = client.request

    async def counted(message: Any, **options: Any) -> Any:
        names.append(message.name)
        return await request(message, **options)

    client.request = counted  # type: ignore[method-assign]
    return names
