"""Flows as Kafka Connect has them: connectors made by REST, kept in Kafka, run by ``flow_set``."""
