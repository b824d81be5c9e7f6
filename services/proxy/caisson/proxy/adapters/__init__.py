"""The other sides: NATS, upstreams, the file that declares them, sealed credentials."""
