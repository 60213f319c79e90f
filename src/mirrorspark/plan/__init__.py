"""Deciding what to replicate: snapshots in, decisions out. No I/O, no clock."""
