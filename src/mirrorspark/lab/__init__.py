"""A world to try it in: real embedded brokers, workloads, faults, checks. Stands on every room; no room imports it."""
