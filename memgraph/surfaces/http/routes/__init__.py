"""The routes that are not derived from operations."""
