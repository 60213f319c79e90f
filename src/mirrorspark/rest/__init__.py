"""Kafka Connect's public REST interface over any ``ConnectorHost``: routes, bodies, access. Knows nothing of Kafka."""
