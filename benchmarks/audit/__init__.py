"""Figures of what an auditor asks: impact, grounds, the past, and the console's pages."""
