"""Erasure with proof: texts gone from rows, indexes and files, and a scan that shows it."""
