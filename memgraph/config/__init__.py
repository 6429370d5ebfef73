"""Settings: what there is, what is in force, and where each value came from."""

from memgraph.config.loading import SettingValue, describe, load_settings
from memgraph.config.reference import Key, keys
from memgraph.config.schema import MemorySettings, Settings

__all__ = [
    "Key",
    "MemorySettings",
    "SettingValue",
    "Settings",
    "describe",
    "keys",
    "load_settings",
]
