"""What the `caisson` commands do, behind the declarations in `cli*.py`: imported only when a command runs."""
