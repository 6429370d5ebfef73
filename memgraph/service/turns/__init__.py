"""The orchestrator's turn: what comes before a prompt, and what is written back after it."""
