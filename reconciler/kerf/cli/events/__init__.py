"""The events and conditions that `kerf events` prints."""
