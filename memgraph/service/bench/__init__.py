"""Measurements that `memgraph bench` prints."""
