"""Background work: the relays of every replica, and what one replica at a time does for all."""
