"""Networks with published weights behind `hetnn serve`, asked by the unchanged tritonclient."""
