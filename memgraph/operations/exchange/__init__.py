"""Export and back up a whole orchestrator."""
