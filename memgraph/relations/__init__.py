"""Relate two statements about one subject: duplicate, update or contradiction.

``compare`` holds the rules. They are not imported here: who reads a quotation (``statement``), as
every recall does, loads none of them.
"""
