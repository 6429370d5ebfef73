"""How two statements about one thing relate: the same, an update, or a contradiction.

``compare`` holds the rules. They are not imported here: who reads a quotation (``statement``), as
every recall does, loads none of them.
"""
