"""The two bulk messages, Fetch and Produce, by hand: their answers and bodies are never copied.

Every other message goes through kafka-python's schemas; docs/decisions/0002 has the measurement.
"""
