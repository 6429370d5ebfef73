"""The console: pages for a person who audits, rendered on the server."""
