"""The life of a memory: events, consolidation, enrichment, decay, reflection, the worker."""
