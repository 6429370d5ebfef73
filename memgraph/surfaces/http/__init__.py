"""The HTTP API: requests to the service, its values as JSON; no rule is defined here."""
