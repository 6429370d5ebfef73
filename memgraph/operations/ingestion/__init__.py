"""Turn dropped and uploaded files into memories."""
