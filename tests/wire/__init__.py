"""Tests of the wire room; a package so that they can share ``batches``."""
