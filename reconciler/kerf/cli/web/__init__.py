"""The page of `kerf ui`, for a laptop: views of a snapshot as HTML.

app.py       the addresses and their templates
pages.py     the parts of every page, and its views as of a time
record_pages.py   the pages of a record
planned.py   the plan of a change
live.py      events for new readings
reported.py  the Events of Kerf in a live cluster
history.py   a record in bounded memory
errors.py    the pages of errors
guards.py    refusals of foreign requests, headers, compression
words.py     values as text in templates
server.py    the socket on the loopback address
"""
