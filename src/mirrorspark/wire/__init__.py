"""The bytes of Kafka: record batches, records, codecs and messages. Bytes in, values out, the same answer every time.

``record_batch`` finds, checks and readdresses whole batches without opening them: the hot path. ``records`` and
``legacy_batch`` open one, ``reencoding`` closes it again for a batch that cannot go as it is, ``aborted`` says which
ones a reader of committed data never sees, ``compression`` and ``varint`` serve those. Nothing here may touch a
socket, the clock, a thread, a log or pyspark.
"""
