"""Contexts within an orchestrator: assembled, injected, kept for one agent."""
