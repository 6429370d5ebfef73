"""Property tests without a time limit for one example: the machine may be busy."""

from hypothesis import settings

settings.register_profile("rules", deadline=None)
settings.load_profile("rules")
