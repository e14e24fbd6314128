"""The verbs that show a cluster as a page or in a terminal."""
