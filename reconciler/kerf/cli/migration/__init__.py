"""The checks of `kerf migrate`."""
