-- The trace that a run was accepted in, as a W3C traceparent: its work anywhere else goes on with it.
ALTER TABLE ledger.runs ADD COLUMN traceparent text CHECK (octet_length(traceparent) <= 256);
