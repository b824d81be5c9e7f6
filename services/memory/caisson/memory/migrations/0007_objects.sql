-- A text is there once of each object of the product's, and once of no object.
DROP INDEX memory.memories_once;
CREATE UNIQUE INDEX memories_once ON memory.memories (
    tenant_id, owner_scope, scope_key, layer, content_hash, context_key, external_id)
    NULLS NOT DISTINCT WHERE status <> 'superseded';
