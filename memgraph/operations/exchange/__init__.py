"""Export and import a whole orchestrator."""
