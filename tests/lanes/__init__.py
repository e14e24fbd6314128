"""Every verb in every format, run from the wheel on each Python with pinned and with the newest dependencies."""
