"""Groundwork: why an answer is what it is, and whether it stands. A library on its own; see README.md."""
