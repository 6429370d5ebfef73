"""The memory in the interfaces of other frameworks. Each needs the extra that bears its name."""
