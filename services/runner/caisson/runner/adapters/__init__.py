"""What is on the other side of the runner: the kernel of its host, the bus, the gateway."""
