"""Devices in other machines: a server that runs subprograms for others, and the client that an executable holds."""
