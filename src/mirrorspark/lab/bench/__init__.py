"""The comparison with the real MirrorMaker 2, and with our own carrying loop without Spark, in one run.

``mirrorspark bench mm2`` enters at ``comparison.run_comparison``. The absolute figures belong to the machine; what counts
are the ratios between parties that carried the same topic between the same brokers, one after the other.
"""
