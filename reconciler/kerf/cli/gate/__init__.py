"""The page of `kerf ui-server`, for several people: each sees what the cluster lets that person list.

options.py    the command line
serving.py    gunicorn with TLS, or the loopback address
access.py     the check of every request
claims.py     the token of a request, or the identity that a proxy vouches for
tokens.py     reviewed tokens, and those whose reviews are not limited
limits.py     limits of TokenReviews by client address
reviews.py    TokenReviews and SubjectAccessReviews, with their answers kept for seconds
flights.py    the reviews of many namespaces for one person
recent.py     a table of a bounded size whose rows expire
readings.py   the objects of the cluster, listed again and again
kept_views.py the views of each set of namespaces, made in the background
metrics.py    the metrics of this process
viewed.py     the views of the person who asks
"""
