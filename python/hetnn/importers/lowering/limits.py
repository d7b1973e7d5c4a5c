"""How large a model may be, of any front."""

# Bodies in bodies and nodes in all that no sensible model has.
DEEPEST = 64
MOST_NODES = 1 << 18
TOO_MANY = f"the model has more than {MOST_NODES} nodes with what its functions and loops repeat. Repeat less."
