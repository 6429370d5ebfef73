"""The HTTP API: requests in, the service's values out as JSON; no rule lives here."""
