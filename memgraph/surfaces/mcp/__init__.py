"""The memory for agents that speak the Model Context Protocol: tools, resources and prompts.

Needs the extra ``memgraph[server]``. Two ways in: ``mounting`` (streamable HTTP) and ``stdio``.
"""
