"""The lab's verbs on the command line: demo, chaos, bench."""
