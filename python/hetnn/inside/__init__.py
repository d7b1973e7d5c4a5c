"""Looking inside an executable: what each node is and costs, when it ran, what it computed, and where that is wrong."""
