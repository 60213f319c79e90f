"""Dashboards, rules and files for those who operate a mirror."""
