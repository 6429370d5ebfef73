"""The ingest pipeline: dropped txt, md and json files become typed memories."""
