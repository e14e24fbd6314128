"""What a running controller reports."""
