"""The facade over everything: ``MemoryService`` and the handle of one orchestrator."""
