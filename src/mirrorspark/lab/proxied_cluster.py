"""A cluster that the mirror reaches through a proxy before each broker, and everybody else directly; brokers come and go.

Used by chaos runs on several brokers and by journeys. Brokers have a listener of their own for the mirror and advertise the
proxy's address on it: what the mirror learns from metadata leads through proxies too.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace

from mirrorspark.lab.broker import Broker
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers, free_port
from mirrorspark.lab.tcp_proxy import TcpProxy

__all__ = ["ProxiedCluster"]

MIRROR_LISTENER = "MIRROR"
HEAP_MB = 256


class ProxiedCluster(ClusterOfBrokers):
    """``mirror_bootstrap`` leads through the proxies; ``proxy(node_id)`` is the one before a broker."""

    def __init__(
        self,
        name: str,
        *,
        brokers: int = 3,
        settings: Mapping[str, str] | None = None,
        racks: bool = False,
    ) -> None:
        """``racks``: each broker is in one of its own, ``rack-<node id>``."""
        self._proxy_ports = [free_port() for _ in range(brokers)]
        self._has_racks = racks
        self._own_settings = dict(settings or {})
        listeners = {MIRROR_LISTENER: "PLAINTEXT"}
        super().__init__(name, brokers=brokers, settings=settings, heap_mb=HEAP_MB, listeners=listeners)
        self._proxies = {broker.spec.node_id: self._proxy_before(broker.spec.node_id) for broker in self.brokers}
        self._lost: set[int] = set()

    @property
    def mirror_bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self._proxy_ports)

    def proxy(self, node_id: int) -> TcpProxy:
        return self._proxies[node_id]

    @property
    def members(self) -> list[Broker]:
        """The brokers that were not lost for good."""
        return [broker for broker in self.brokers if broker.spec.node_id not in self._lost]

    def launch(self) -> None:
        for proxy in self._proxies.values():
            proxy.start()
        super().launch()

    def stop(self) -> None:
        for proxy in self._proxies.values():
            proxy.stop()
        super().stop()

    def add_broker(self) -> Broker:
        """One more, empty, with the next node id; it gets partitions by reassignment only."""
        for ports in (self._ports, self._listener_ports[MIRROR_LISTENER], self._proxy_ports):
            ports.append(free_port())
        node_id = len(self._ports)
        broker = self._broker(node_id, self._own_settings, list(self.brokers[0].spec.jvm_flags))
        self.brokers.append(broker)
        proxy = self._proxies[node_id] = self._proxy_before(node_id)
        proxy.start()
        broker.start()
        return broker

    def lose(self, node_id: int) -> None:
        """Kill a broker, with its data, for ever. Where it was a controller too, one without data takes that part over."""
        broker = self.broker(node_id)
        broker.kill()
        shutil.rmtree(broker.data)
        self._lost.add(node_id)
        if node_id <= len(self._controller_ports):
            address = f"CONTROLLER://127.0.0.1:{self._controller_ports[node_id - 1]}"
            alone = {"process.roles": "controller", "listeners": address, "advertised.listeners": address}
            controller = Broker(replace(broker.spec, properties={**broker.spec.properties, **alone}))
            self.brokers[node_id - 1] = controller
            controller.start(wait=False)

    def _identity(self, node_id: int) -> dict[str, str]:
        plain = f"CLIENT://127.0.0.1:{self._ports[node_id - 1]}"
        told = f"{plain},{MIRROR_LISTENER}://127.0.0.1:{self._proxy_ports[node_id - 1]}"
        rack = {"broker.rack": f"rack-{node_id}"} if self._has_racks else {}
        return {**super()._identity(node_id), "advertised.listeners": told, **rack}

    def _proxy_before(self, node_id: int) -> TcpProxy:
        return TcpProxy(self._proxy_ports[node_id - 1], self._listener_ports[MIRROR_LISTENER][node_id - 1])
