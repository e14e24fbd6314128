"""The page of `kerf ui`, for a laptop: views of a snapshot as HTML.

app.py       the addresses and their templates
guards.py    refusals of foreign requests, headers, compression
words.py     values as text in templates
server.py    the socket on the loopback address
"""
