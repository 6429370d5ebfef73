"""Serve memory over the Model Context Protocol (MCP): tools, resources and prompts.

Requires the extra ``server``. There are two transports: ``http`` (streamable HTTP) and ``stdio``.
"""

from memgraph.errors import ExtraMissing

try:
    import mcp_types  # noqa: F401  all modules of this package need it
except ModuleNotFoundError:
    raise ExtraMissing.of("MCP needs the extra server", extra="server") from None
