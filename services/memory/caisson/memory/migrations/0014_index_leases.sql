-- Each lease of index work is another: a relay that was slow knows whether it still holds what it took.
CREATE SEQUENCE memory.index_leases;
ALTER TABLE memory.index_outbox ADD COLUMN lease bigint NOT NULL DEFAULT 0;
