"""What a decision may depend on (Snapshot) and what it may ask for (Plan), as frozen values."""
