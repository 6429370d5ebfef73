"""The orchestrator's turn: context before a prompt, and writes after it."""
