"""The user data of each image family, merged with the user's own."""
