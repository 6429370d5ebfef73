"""Every benchmark of memgraph; `memgraph bench` comes with this package."""
