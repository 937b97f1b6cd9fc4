"""The adapter and what it is made of: method contract, registry, structure finder, snapshot, state files."""
