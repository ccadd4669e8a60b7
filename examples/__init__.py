"""Programs to learn from."""
