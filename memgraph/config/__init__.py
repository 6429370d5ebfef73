"""Settings: the keys, the values in force, and the origin of each value."""

from memgraph.config.loader import SettingReference, SettingValue, describe, keys, load_settings
from memgraph.config.schema import MemorySettings, Settings

__all__ = [
    "MemorySettings",
    "SettingReference",
    "SettingValue",
    "Settings",
    "describe",
    "keys",
    "load_settings",
]
