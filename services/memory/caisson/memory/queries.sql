-- Every statement of memory. Reads go through memory.readable or memory.visible; writers of a tenant hold its lock.

-- name: answers$
SELECT 1;

-- name: read_memory^
-- One memory by its id or its external id; own ones before shared ones. With as_of, only if in force then.
SELECT m.*, ARRAY(SELECT s.source_id FROM memory.sources s
                  WHERE s.tenant_id = m.tenant_id AND s.memory_id = m.memory_id ORDER BY 1) AS sources
FROM memory.readable(:tenant, :allowed, :now) m
WHERE (m.memory_id = :id OR m.external_id = :id)
  AND (:as_of::timestamptz IS NULL
       OR (m.valid_from <= :as_of AND (m.valid_to IS NULL OR m.valid_to > :as_of)))
ORDER BY (m.memory_id = :id) DESC, (m.owner_scope = :own) DESC, m.owner_scope
LIMIT 1;

-- name: list_memories
-- Newest first. Cold ones are listed too; superseded ones only where as_of lies before their end.
SELECT m.*, ARRAY(SELECT s.source_id FROM memory.sources s
                  WHERE s.tenant_id = m.tenant_id AND s.memory_id = m.memory_id ORDER BY 1) AS sources
FROM memory.visible(:tenant, :allowed, :now, :as_of, :layers, true) m
WHERE (:status::text IS NULL OR m.status = :status)
  AND (:subject::text IS NULL OR m.subject = :subject)
  AND (:before_at::timestamptz IS NULL OR (m.created_at, m.memory_id) < (:before_at, :before_id::text))
ORDER BY m.created_at DESC, m.memory_id DESC
LIMIT :limit;

-- name: visible_among
-- The memories among these ids that a recall may tell now: the check of every hit before it leaves.
SELECT m.*, ARRAY(SELECT s.source_id FROM memory.sources s
                  WHERE s.tenant_id = m.tenant_id AND s.memory_id = m.memory_id ORDER BY 1) AS sources
FROM memory.visible(:tenant, :allowed, :now, :as_of, :layers, false) m
WHERE m.memory_id = ANY (:ids::text[]);

-- name: search_lexemes
-- Degraded recall: memories that hold any of the terms, with which of them, newest first where there are too many.
SELECT m.memory_id, length(l.lexemes) AS size,
       ARRAY(SELECT place FROM unnest(:terms::tsquery[]) WITH ORDINALITY AS asked (term, place)
             WHERE l.lexemes @@ term) AS matched
FROM memory.visible(:tenant, :allowed, :now, :as_of, :layers, false) m
JOIN memory.lexemes l ON l.tenant_id = m.tenant_id AND l.memory_id = m.memory_id
WHERE l.lexemes @@ :any_term::tsquery
ORDER BY m.created_at DESC
LIMIT :limit;

-- name: scope_epochs
-- A scope without a row is at epoch 0.
SELECT scope, epoch FROM memory.scope_epochs WHERE tenant_id = :tenant AND scope = ANY (:allowed::text[]);

-- name: record_retrieval!
INSERT INTO memory.retrievals (retrieval_id, tenant_id, user_id, session_id, kind, injected)
VALUES (:retrieval, :tenant, :user, :session, :kind, :injected);

-- name: record_events!
-- Facts for the bus, in the transaction that makes them true.
INSERT INTO memory.events (event_id, tenant_id, user_id, session_id, run_id, type, data)
SELECT * FROM unnest(:ids::text[], :tenants::text[], :users::text[], :sessions::text[], :runs::text[],
                     :types::text[], :datas::jsonb[]);

-- name: read_history
-- Every version of a readable memory and of the readable facts that it replaced or that replaced it.
WITH RECURSIVE asked AS (
    SELECT m.memory_id FROM memory.readable(:tenant, :allowed, :now) m
    WHERE m.memory_id = :id OR m.external_id = :id
    ORDER BY (m.memory_id = :id) DESC, (m.owner_scope = :own) DESC, m.owner_scope LIMIT 1
), chain AS (
    SELECT m.memory_id, m.superseded_by FROM memory.readable(:tenant, :allowed, :now) m JOIN asked USING (memory_id)
    UNION
    SELECT m.memory_id, m.superseded_by
    FROM chain JOIN memory.readable(:tenant, :allowed, :now) m
        ON m.superseded_by = chain.memory_id OR m.memory_id = chain.superseded_by
)
SELECT h.memory_id, h.version, h.change, h.text, h.valid_from, h.valid_to, h.at
FROM chain JOIN memory.history h ON h.tenant_id = :tenant AND h.memory_id = chain.memory_id
ORDER BY h.at, h.memory_id, h.version;

-- name: lock_tenant^
-- The lock of everyone who writes a tenant's memories, and what the tenant holds.
INSERT INTO memory.usage AS u (tenant_id, user_id) VALUES (:tenant, '')
ON CONFLICT (tenant_id, user_id) DO UPDATE SET rows = u.rows
RETURNING rows, bytes;

-- name: account^
-- What a user and its tenant hold.
SELECT coalesce(sum(rows) FILTER (WHERE user_id = :user), 0)::bigint AS user_rows,
       coalesce(sum(bytes) FILTER (WHERE user_id = :user), 0)::bigint AS user_bytes,
       coalesce(sum(rows) FILTER (WHERE user_id = ''), 0)::bigint AS tenant_rows,
       coalesce(sum(bytes) FILTER (WHERE user_id = ''), 0)::bigint AS tenant_bytes
FROM memory.usage WHERE tenant_id = :tenant AND user_id IN ('', :user);

-- name: standing
-- What stands already where a draft would go: its external id, its text, or the same in other words.
SELECT m.memory_id, m.scope_key, m.layer, m.content_hash, m.context_key, m.fact_key, m.valid_to,
       m.external_id IS NOT DISTINCT FROM :external_id AND m.external_id IS NOT NULL AS is_external
FROM memory.readable(:tenant, :allowed, :now) m
WHERE m.owner_scope = :owner
  AND (m.external_id = :external_id
       OR (m.scope_key = :scope_key AND m.layer = :layer AND m.status <> 'superseded'
           AND (m.content_hash = :content_hash OR (m.memory_id = :twin AND m.version = :twin_version))));

-- name: is_forgotten$
SELECT EXISTS (SELECT 1 FROM memory.tombstones
               WHERE tenant_id = :tenant AND owner_scope = :owner AND content_hash = :content_hash);

-- name: lift_tombstone!
DELETE FROM memory.tombstones WHERE tenant_id = :tenant AND owner_scope = :owner AND content_hash = :content_hash;

-- name: drop_expired_in_the_way!
-- An expired memory holds no place; the sweep would take it later.
DELETE FROM memory.memories m
WHERE m.tenant_id = :tenant AND m.owner_scope = :owner AND m.expires_at <= :now
  AND (m.content_hash = :content_hash OR m.external_id = :external_id OR m.fact_key = :fact_key);

-- name: facts_around
-- The fact that is in force at a time, and the next one after it.
(SELECT m.memory_id, m.valid_from, true AS before FROM memory.readable(:tenant, :allowed, :now) m
 WHERE m.fact_key = :fact_key AND m.owner_scope = :owner AND m.scope_key = :scope_key AND m.layer = :layer
   AND m.valid_from <= :at AND (m.valid_to IS NULL OR m.valid_to > :at) AND m.memory_id <> :memory
 ORDER BY m.valid_from DESC LIMIT 1)
UNION ALL
(SELECT m.memory_id, m.valid_from, false FROM memory.readable(:tenant, :allowed, :now) m
 WHERE m.fact_key = :fact_key AND m.owner_scope = :owner AND m.scope_key = :scope_key AND m.layer = :layer
   AND m.valid_from > :at AND m.memory_id <> :memory
 ORDER BY m.valid_from LIMIT 1);

-- name: close_memory!
-- A successor ends a memory; its history keeps both ends.
WITH closed AS (
    UPDATE memory.memories SET status = 'superseded', superseded_by = :successor,
        valid_to = least(valid_to, greatest(:at::timestamptz, valid_from))
    WHERE tenant_id = :tenant AND memory_id = :memory
    RETURNING tenant_id, memory_id, version, text, content_hash, valid_from, valid_to
)
INSERT INTO memory.history (tenant_id, memory_id, version, change, text, content_hash, valid_from, valid_to, at)
SELECT tenant_id, memory_id, version, 'superseded', text, content_hash, valid_from, valid_to, :now FROM closed;

-- name: cool_sources!
-- The episodes that a superseded fact came from, or that say the same older thing, go cold with it.
WITH cooled AS (
    UPDATE memory.memories m SET status = 'cold'
    WHERE m.tenant_id = :tenant AND m.status = 'active' AND m.layer = 'episodic'
      AND (m.memory_id IN (SELECT s.source_id FROM memory.sources s
                           WHERE s.tenant_id = :tenant AND s.memory_id = :memory)
           OR (m.fact_key = :fact_key AND m.owner_scope = :owner AND m.scope_key = :scope_key
               AND m.valid_from <= :at))
    RETURNING m.tenant_id, m.memory_id, m.version, m.text, m.content_hash, m.valid_from, m.valid_to
)
INSERT INTO memory.history (tenant_id, memory_id, version, change, text, content_hash, valid_from, valid_to, at)
SELECT tenant_id, memory_id, version, 'cooled', text, content_hash, valid_from, valid_to, :now FROM cooled;

-- name: insert_memory!
-- A memory, its terms and its first version.
WITH fresh AS (
    INSERT INTO memory.memories (
        tenant_id, memory_id, external_id, user_id, owner_scope, scopes, scope_key, layer, status, text, content_hash,
        context_key, subject, attribute, fact_key, outcome, confirmations, importance, confidence, trust, valid_from, valid_to,
        expires_at, tags, metadata, provenance_kind, run_id, session_id, source, superseded_by, used_at)
    VALUES (
        :tenant, :memory, :external_id, :user, :owner, :scopes, :scope_key, :layer, :status, :text, :content_hash,
        :context_key, :subject, :attribute, :fact_key, :outcome, :confirmations, :importance, :confidence, :trust, :valid_from,
        :valid_to, :expires_at, :tags, :metadata, :provenance_kind, :run, :session, :source, :successor, :now)
    RETURNING tenant_id, memory_id, text, content_hash, valid_from, valid_to
), terms AS (
    INSERT INTO memory.lexemes (tenant_id, memory_id, lexemes)
    SELECT tenant_id, memory_id, array_to_tsvector(:terms::text[]) FROM fresh
)
INSERT INTO memory.history (tenant_id, memory_id, version, change, text, content_hash, valid_from, valid_to, at)
SELECT tenant_id, memory_id, 1, :change, text, content_hash, valid_from, valid_to, :now FROM fresh;

-- name: restate_memory!
-- The product's own object has a new text: same id, next version, in force again.
WITH fresh AS (
    UPDATE memory.memories SET
        scopes = :scopes, scope_key = :scope_key, layer = :layer, status = 'active', text = :text,
        content_hash = :content_hash, context_key = :context_key, subject = :subject, attribute = :attribute, fact_key = :fact_key,
        outcome = :outcome, confirmations = :confirmations, importance = :importance, confidence = :confidence,
        trust = :trust, valid_from = :valid_from, valid_to = :valid_to, expires_at = :expires_at, tags = :tags,
        metadata = :metadata, provenance_kind = :provenance_kind, run_id = :run, session_id = :session,
        source = :source, superseded_by = NULL, used_at = :now
    WHERE tenant_id = :tenant AND memory_id = :memory
    RETURNING tenant_id, memory_id, version, text, content_hash, valid_from, valid_to
), terms AS (
    UPDATE memory.lexemes l SET lexemes = array_to_tsvector(:terms::text[])
    FROM fresh WHERE l.tenant_id = fresh.tenant_id AND l.memory_id = fresh.memory_id
)
INSERT INTO memory.history (tenant_id, memory_id, version, change, text, content_hash, valid_from, valid_to, at)
SELECT tenant_id, memory_id, version, 'restated', text, content_hash, valid_from, valid_to, :now FROM fresh;

-- name: confirm_memory!
-- The same was said again: it counts, and a cold memory wakes.
WITH before AS (
    SELECT tenant_id, memory_id, status FROM memory.memories
    WHERE tenant_id = :tenant AND memory_id = :memory AND status <> 'superseded'
), fresh AS (
    UPDATE memory.memories m SET confirmations = m.confirmations + 1, status = 'active', used_at = :now
    FROM before WHERE m.tenant_id = before.tenant_id AND m.memory_id = before.memory_id
    RETURNING m.tenant_id, m.memory_id, m.version, m.text, m.content_hash, m.valid_from, m.valid_to,
              before.status AS was
)
INSERT INTO memory.history (tenant_id, memory_id, version, change, text, content_hash, valid_from, valid_to, at)
SELECT tenant_id, memory_id, version, 'woken', text, content_hash, valid_from, valid_to, :now FROM fresh
WHERE was = 'cold';

-- name: link_source!
-- Where the provenance names a readable memory, that is its source.
INSERT INTO memory.sources (tenant_id, memory_id, source_id)
SELECT :tenant, :memory, m.memory_id FROM memory.readable(:tenant, :allowed, :now) m
WHERE (m.memory_id = :source OR m.external_id = :source) AND m.memory_id <> :memory
ORDER BY (m.memory_id = :source) DESC, (m.owner_scope = :owner) DESC LIMIT 1
ON CONFLICT DO NOTHING;

-- name: drop_expired
-- Expired memories of one tenant go, a page at a time; triggers take their points, usage and cached recalls.
DELETE FROM memory.memories m USING (
    SELECT tenant_id, memory_id FROM memory.memories
    WHERE tenant_id = :tenant AND expires_at <= :now ORDER BY expires_at LIMIT :limit
) expired
WHERE m.tenant_id = expired.tenant_id AND m.memory_id = expired.memory_id
RETURNING m.memory_id, m.user_id;
