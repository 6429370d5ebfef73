"""One parser for each shape of file; each returns a ``ParsedDocument`` or refuses the file."""
