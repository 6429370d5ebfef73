"""Access to a server: keys, principals and refusals."""
