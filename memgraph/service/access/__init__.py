"""Who may ask a server: keys, principals, refusals."""
