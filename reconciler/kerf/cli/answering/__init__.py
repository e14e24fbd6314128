"""The pages of `kerf why`."""
