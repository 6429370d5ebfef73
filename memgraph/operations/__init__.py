"""One method for each operation: its permission, its typed parameters, its docstring."""
