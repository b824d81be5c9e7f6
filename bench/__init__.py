"""What Caisson costs: `make bench`. One file per question."""
