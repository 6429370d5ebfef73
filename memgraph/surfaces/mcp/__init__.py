"""The memory for agents that speak the Model Context Protocol: tools, resources and prompts.

Needs the extra ``server``. Two transports: ``mounting`` (streamable HTTP) and ``stdio``.
"""

from memgraph.errors import ExtraMissing

try:
    import mcp_types  # noqa: F401  all of the package takes it
except ModuleNotFoundError:
    raise ExtraMissing.of("MCP needs the extra server", extra="server") from None
