-- A second, looser key of what is forgotten from now on; earlier tombstones keep the first alone.
ALTER TABLE memory.tombstones
    ADD COLUMN bare_hash bytea CHECK (octet_length(bare_hash) = 32);
CREATE INDEX tombstones_by_bare_hash ON memory.tombstones (tenant_id, owner_scope, bare_hash)
    WHERE bare_hash IS NOT NULL;
