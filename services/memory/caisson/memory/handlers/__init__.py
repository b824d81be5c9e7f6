"""NATS in: what the gateway and runs ask of memory (`caisson.rpc.memory.*`), one file per kind of request."""
