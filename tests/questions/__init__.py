"""What strangers ask of the code, with answers and places."""
