"""Adapters for other frameworks. Each needs the extra that bears its name."""
