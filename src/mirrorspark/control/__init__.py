"""Wanted state, actual state, people: settings files, the flows' drivers, the command line."""
