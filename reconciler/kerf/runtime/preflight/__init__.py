"""What a cluster and an account lack for Kerf to work there, found before anything is launched."""
