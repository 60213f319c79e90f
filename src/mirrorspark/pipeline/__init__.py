"""The data path on Spark. Only mirror_source, flow_query, query_listener and session import pyspark."""
