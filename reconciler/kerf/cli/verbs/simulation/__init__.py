"""`kerf simulate`: users' tests for their NodePools.

simulate.py      the command
loading.py       a scenario file and the files that it names
objects.py       objects in files and folders
shapes.py        fields of manifests
pod_rules.py     rules between the fields of pods and workloads
repeating.py     many runs in parallel processes
page.py          results as text
bars.py          nodes and cost over time as text
variants.py      sets of NodePools and autoscalers to compare
spreads.py       the spread of figures over many runs
side_by_side.py  results of several variants as one table
notices.py       warnings as text
documents.py     results as JSON and as JUnit's XML
drawing.py       charts of nodes and cost
report.py        results as one HTML file
outputs.py       the files that the command writes
"""
