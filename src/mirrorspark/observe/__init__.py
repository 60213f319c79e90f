"""Numbers and words about what happened."""
