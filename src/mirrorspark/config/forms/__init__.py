"""The forms in which a mirror is written down: mm2.properties, Kafka Connect's JSON, Strimzi's YAML, and plain YAML.

Readers turn any of them into one Document, writers turn a Document into any of them. ``front_door.read_forms`` and
``writing.write_form`` are for callers; the other modules are theirs. Nothing here opens a connection or says what a
setting means: that is the catalogue's part.
"""
