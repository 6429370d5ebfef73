"""Verify, back up, restore and rebuild."""
