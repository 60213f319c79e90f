"""The command line: one file per verb. Thin: parse, call, render."""
