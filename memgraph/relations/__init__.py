"""Relate two statements about one subject: duplicate, update or contradiction.

The rules are in ``compare``. They are not imported here, so that recalls, which only parse
quotations (``statement``), do not load them.
"""
