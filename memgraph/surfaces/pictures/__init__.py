"""Pictures of the memory: graphs and timelines, for the command line and for the documentation."""
