"""What AWS has and is asked for."""
