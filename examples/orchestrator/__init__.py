"""A small orchestrator that has a memory: channels, a queue, a selector, workflows, diagnostics.

It is here to be read and copied. Start with ``host.py``: that is where the memory is called.
"""
