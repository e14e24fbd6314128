"""`kerf simulate`: users' tests for their NodePools.

simulate.py      the command
loading.py       a scenario file and the files that it names
shapes.py        fields of manifests
outputs.py       files to write, checked before the runs
repeating.py     many runs in parallel processes
page.py          results as text
side_by_side.py  results of several sets of NodePools as one table
notices.py       warnings as text
documents.py     results as JSON and as JUnit's XML
"""
