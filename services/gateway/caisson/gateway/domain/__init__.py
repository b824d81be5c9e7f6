"""Pure rules of the ledger and the API: no I/O, no framework, no clock."""
