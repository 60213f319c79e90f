"""Talking to one cluster: the only room that opens a socket to Kafka."""
