"""How the house stands: sizes, imports, calls, as figures with their limits (`python -m tests.house`)."""
