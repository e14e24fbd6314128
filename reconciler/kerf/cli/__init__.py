"""The `kerf` command.

Rooms and files, from the top; each imports only from those below it (import-linter holds that):

    main.py          the quick verbs and no framework        pages/      pages of docs/reference
    app.py           all other verbs
    verbs/           the verbs, a module each
    migration/       the checks of `kerf migrate`
    answering/       the pages of `kerf why`
    gathering/       files, folders, Git, charts             rewriting/  manifests written with their comments
    reports/         findings in the formats of CI services
    manifests/       YAML as documents with places           demonstration/  operating/
    arguments.py  output.py  parser.py
"""
