"""The cluster and AWS as they are: watches, lists and polls."""
