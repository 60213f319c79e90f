"""Forms of configurations."""
