-- What a search found is good until the next memory comes into force: finding that one must not cost a scan.
CREATE INDEX memories_to_come ON memory.memories (tenant_id, valid_from);
