"""mirrorspark: replication between Kafka clusters, on Spark, by whole record batches."""

__version__ = "0.1.0"

__all__ = ["__version__"]
