"""When certificates end, for an alert that comes before no connection can be made any more.

``flow_runtime`` runs one beside its other jobs. Looks an hour apart at the stores that the settings name and at what brokers
showed on the driver's connections. Nothing depends on it; what cannot be read is logged, and its series is missing.
"""

from __future__ import annotations

import asyncio
import logging

from mirrorspark.cluster.certificate_expiry import earliest, store_expiries
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.observe.flow_status import FlowStatus
from mirrorspark.settings import ClusterSettings

__all__ = ["CertificateWatch"]

log = logging.getLogger("mirrorspark.certificates")

LOOK_INTERVAL_S = 3_600.0


class CertificateWatch:
    def __init__(self, clusters: list[tuple[ClusterSettings, ClusterClient]], status: FlowStatus) -> None:
        self._clusters = clusters
        self._status = status

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            for settings, client in self._clusters:
                await self._look(settings, client)
            await asyncio.sleep(LOOK_INTERVAL_S)

    async def _look(self, settings: ClusterSettings, client: ClusterClient) -> None:
        if not settings.client.get("security.protocol", "").strip().upper().endswith("SSL"):
            return
        try:
            found = await asyncio.to_thread(store_expiries, settings.login)
            if (broker := earliest(client.peer_certificates)) is not None:
                found["broker"] = broker
        except Exception as error:  # noqa: BLE001  (told, and tried again; a flow must not end because of it)
            log.warning("%s: certificates of %s: %s", self._status.flow, settings.alias, error)
            return
        for name, ends_at in found.items():
            self._status.certificates[settings.alias, name] = ends_at
