"""The embedded index: the Qdrant engine over a folder of this host, in a process of its own."""
