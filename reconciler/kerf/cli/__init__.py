"""The `kerf` command.

Rooms and files, from the top; each imports only from those below it (import-linter holds that):

    main.py          the quick verbs and no framework        pages/      pages of docs/reference
    completing.py    the completion of `kubectl kerf`
    app.py           all other verbs
    verbs/           the verbs, a module each
    migration/       the checks of `kerf migrate`
    answering/       the pages of `kerf why`               events/     events and conditions for `kerf events`
    gathering/       files, folders, Git, charts             rewriting/  manifests written with their comments
    reports/         findings in the formats of CI services
    demonstration/   the live demo                           operating/  a controller that runs
    arguments.py  output.py  parser.py
    terminal.py      text fitted to a terminal               charts.py   charts as SVG
"""
