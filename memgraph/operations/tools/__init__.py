"""Tools of language models and agents."""
