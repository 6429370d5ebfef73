"""One parser for each file format; each returns a ``ParsedDocument`` or rejects the file."""
