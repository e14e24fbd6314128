"""The container image: its Dockerfile is played, and what comes out is looked at and run as a cluster would run it."""
