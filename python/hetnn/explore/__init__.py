"""Model Explorer's view of a report: its graphs, figures of their nodes, and an adapter that opens .hetnn files there.

`model-explorer net.hetnn --extensions=hetnn.explore` loads the module `main` of this folder.
"""
