"""The page of `kerf ui`, for a laptop: views of a snapshot as HTML.

app.py       the addresses and their templates
guards.py    refusals of foreign requests, headers, compression
words.py     values as text in templates
boards.py    the current views, read again while the cluster is live
server.py    the socket on the loopback address
"""
