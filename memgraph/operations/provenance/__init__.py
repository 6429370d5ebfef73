"""Sources: list, retract and restore them."""
