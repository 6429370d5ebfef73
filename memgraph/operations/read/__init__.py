"""Look memories up, recall them, and keep receipts."""
