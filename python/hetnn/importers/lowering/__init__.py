"""What the importers of several fronts lower alike stands here once."""
