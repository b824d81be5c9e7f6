-- Whoever asks for a few rows reads a few rows, whatever other tenants, owners and sessions hold, and whatever the planner
-- believes of the average one: a lookup has one index that it can take, and that index has all of its key.

-- What is found by its text, its fact or its name in a tenant, and then by its owner.
DROP INDEX memory.memories_once;
CREATE UNIQUE INDEX memories_once ON memory.memories (
    tenant_id, content_hash, owner_scope, scope_key, layer, context_key, external_id)
    NULLS NOT DISTINCT WHERE status <> 'superseded';
DROP INDEX memory.memories_facts;
CREATE INDEX memories_facts ON memory.memories (tenant_id, fact_key, owner_scope, valid_from) WHERE fact_key IS NOT NULL;
DROP INDEX memory.memories_by_external_id;
CREATE UNIQUE INDEX memories_by_external_id ON memory.memories (tenant_id, external_id, owner_scope)
    WHERE external_id IS NOT NULL;

ALTER TABLE memory.tombstones DROP CONSTRAINT tombstones_pkey, ADD PRIMARY KEY (tenant_id, content_hash, owner_scope);
DROP INDEX memory.tombstones_by_bare_hash;
CREATE INDEX tombstones_by_bare_hash ON memory.tombstones (tenant_id, bare_hash) WHERE bare_hash IS NOT NULL;

-- Only who reads an owner's memories page by page, or asks for the next one to come, says COLLATE "C" (and AT TIME ZONE):
-- these indexes offer themselves to nobody else, who would read all of an owner, of a tenant, or of everybody for a few rows.
DROP INDEX memory.memories_by_owner;
CREATE INDEX memories_by_owner ON memory.memories (tenant_id COLLATE "C", owner_scope, memory_id);
DROP INDEX memory.memories_to_come;
CREATE INDEX memories_to_come ON memory.memories (tenant_id COLLATE "C", (valid_from AT TIME ZONE 'UTC'));

-- The episodes of one owner and one set of scopes, page by page.
DROP INDEX memory.memories_active_episodes;
CREATE INDEX memories_active_episodes ON memory.memories (tenant_id, owner_scope, scope_key, created_at, memory_id)
    WHERE layer = 'episodic' AND status = 'active';

-- What expired of one tenant, beside what expired of all.
CREATE INDEX memories_expiring_of_tenant ON memory.memories (tenant_id, expires_at) WHERE expires_at IS NOT NULL;

-- Ids of memories are nobody else's, so that edges are found by them alone.
ALTER TABLE memory.sources DROP CONSTRAINT sources_pkey, ADD PRIMARY KEY (memory_id, source_id, tenant_id);
DROP INDEX memory.sources_by_source;
CREATE INDEX sources_by_source ON memory.sources (source_id, tenant_id);

CREATE OR REPLACE FUNCTION memory.kin_of(tenant text, made text, following text, allowed text[], moment timestamptz)
RETURNS TABLE (sources text[], successor text)
LANGUAGE sql STABLE AS $$
    SELECT ARRAY(SELECT s.source_id FROM memory.sources s CROSS JOIN LATERAL (
                     SELECT 1 FROM memory.memories m
                     WHERE m.tenant_id = tenant AND m.memory_id = s.source_id
                       AND m.scopes && allowed AND (m.expires_at IS NULL OR m.expires_at > moment)
                     OFFSET 0) seen
                 WHERE s.tenant_id = tenant AND s.memory_id = made
                 ORDER BY 1),
           (SELECT m.memory_id FROM memory.memories m
            WHERE m.tenant_id = tenant AND m.memory_id = following
              AND m.scopes && allowed AND (m.expires_at IS NULL OR m.expires_at > moment))
$$;

-- What is readable under a name: an id, or an external id of any owner.
CREATE FUNCTION memory.named(tenant text, allowed text[], moment timestamptz, name text) RETURNS SETOF memory.memories
LANGUAGE sql STABLE AS $$
    SELECT r.* FROM memory.readable(tenant, allowed, moment) r WHERE r.memory_id = name
    UNION ALL
    SELECT r.* FROM memory.readable(tenant, allowed, moment) r WHERE r.external_id = name AND r.memory_id <> name
$$;

-- The terms of one tenant's texts: a common word is not looked up among everybody's.
CREATE FUNCTION memory.term_keys(tenant text, terms text[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE AS $$
    SELECT ARRAY(SELECT hashtextextended(term, hashtextextended(tenant, 0)) FROM unnest(terms) AS term)
$$;
DROP INDEX memory.lexemes_by_term;
CREATE INDEX lexemes_by_term ON memory.lexemes USING gin (memory.term_keys(tenant_id, tsvector_to_array(lexemes)));
ALTER INDEX memory.lexemes_by_term ALTER COLUMN 1 SET STATISTICS 0;

-- Recalls of a session, of a user, and those whose uses are still to be counted.
DROP INDEX memory.retrievals_by_session;
CREATE INDEX retrievals_by_session ON memory.retrievals (session_id, tenant_id) WHERE session_id IS NOT NULL;
CREATE INDEX retrievals_by_user ON memory.retrievals (tenant_id, user_id, retrieval_id);
CREATE INDEX retrievals_uncounted ON memory.retrievals (tenant_id) WHERE NOT counted;

-- The distillations of a tenant, whose texts a deletion must reach; and what goes after a long time and after a short one.
CREATE INDEX jobs_distilling ON memory.jobs (tenant_id, user_id) WHERE kind = 'distil';
DROP INDEX memory.jobs_by_age;
CREATE INDEX jobs_receipts ON memory.jobs (updated_at) WHERE done AND kind <> 'distil';
CREATE INDEX jobs_unfinished ON memory.jobs (updated_at) WHERE NOT done OR kind = 'distil';
