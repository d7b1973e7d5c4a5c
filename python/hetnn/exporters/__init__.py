"""Exporters: from a graph of the intermediate representation to files that other tools read."""
