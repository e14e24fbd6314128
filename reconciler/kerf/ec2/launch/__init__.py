"""Fleet requests and launch templates, and the offerings that they name."""
