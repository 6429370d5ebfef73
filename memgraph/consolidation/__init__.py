"""From what was said to what is known: reading sessions, matching, conflicts, digests."""
