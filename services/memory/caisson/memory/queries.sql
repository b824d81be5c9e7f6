-- Every statement of memory. Reads go through memory.readable or memory.visible; writers of a tenant hold its lock.
--
-- Rows that are asked for by their keys are read by their keys, however little the planner expects of a tenant: readers
-- join each key LATERAL with OFFSET 0, and writers join a list of keys that names the tenant in each row.

-- name: answers$
SELECT 1;

-- name: read_memory^
-- One memory by its id or its external id; own ones before shared ones. With as_of, only if in force then.
SELECT m.*, kin.sources, kin.successor
FROM memory.named(:tenant, :allowed, :now, :id) m
CROSS JOIN LATERAL memory.kin_of(:tenant, m.memory_id, m.superseded_by, :allowed, :now) kin
WHERE :as_of::timestamptz IS NULL OR (m.valid_from <= :as_of AND (m.valid_to IS NULL OR m.valid_to > :as_of))
ORDER BY (m.memory_id = :id) DESC, (m.owner_scope = :own) DESC, m.owner_scope
LIMIT 1;

-- name: list_memories
-- Newest first. Cold ones are listed too; superseded ones only where as_of lies before their end.
SELECT m.*, kin.sources, kin.successor
FROM memory.visible(:tenant, :allowed, :now, :as_of, :layers, true) m
CROSS JOIN LATERAL memory.kin_of(:tenant, m.memory_id, m.superseded_by, :allowed, :now) kin
WHERE (:status::text IS NULL OR m.status = :status)
  AND (:subject::text IS NULL OR m.subject = :subject)
  AND (:before_at::timestamptz IS NULL OR (m.created_at, m.memory_id) < (:before_at, :before_id::text))
ORDER BY m.created_at DESC, m.memory_id DESC
LIMIT :limit;

-- name: confirm
-- The check of every hit before it leaves: the memories among these ids that a recall may tell now. Beside them, and alone
-- where there are none: how often anything changed in these scopes, and when the next of their memories comes into force,
-- if that is soon.
SELECT epoch.changes, coming.until, told.*
FROM (SELECT coalesce(sum(e.epoch), 0)::bigint AS changes FROM memory.scope_epochs e
      WHERE e.tenant_id = :tenant AND e.scope = ANY (:allowed::text[])) epoch
CROSS JOIN memory.next_to_come(:tenant, :allowed, :now, :horizon) coming
LEFT JOIN LATERAL (
    SELECT m.*, kin.sources, kin.successor
    FROM unnest(:ids::text[]) AS asked (id)
    CROSS JOIN LATERAL (
        SELECT v.* FROM memory.visible(:tenant, :allowed, :now, :as_of, :layers, false) v
        WHERE v.memory_id = asked.id OFFSET 0
    ) m
    CROSS JOIN LATERAL memory.kin_of(:tenant, m.memory_id, m.superseded_by, :allowed, :now) kin
) told ON true;

-- name: expired_among$
-- How many of these ids are the principal's to see, but for their expiry.
SELECT count(*) FROM unnest(:ids::text[]) AS asked (id)
CROSS JOIN LATERAL (
    SELECT r.expires_at FROM memory.readable(:tenant, :allowed, '-infinity') r WHERE r.memory_id = asked.id OFFSET 0
) m
WHERE m.expires_at <= :now;

-- name: search_lexemes
-- Degraded recall: memories that hold any of the terms, with which of them; where there are too many, most terms first.
SELECT found.memory_id, found.size, found.matched
FROM (SELECT m.memory_id, m.created_at, length(l.lexemes) AS size,
             ARRAY(SELECT place FROM unnest(:terms::text[]) WITH ORDINALITY AS asked (term, place)
                   WHERE l.lexemes @@ term::tsquery) AS matched
      FROM (SELECT * FROM memory.lexemes l
            WHERE memory.term_keys(l.tenant_id, tsvector_to_array(l.lexemes)) && memory.term_keys(:tenant, :words::text[])
            OFFSET 0) l
      CROSS JOIN LATERAL (
          SELECT v.memory_id, v.created_at FROM memory.visible(:tenant, :allowed, :now, :as_of, :layers, false) v
          WHERE v.memory_id = l.memory_id OFFSET 0
      ) m
      WHERE l.tenant_id = :tenant) found
WHERE cardinality(found.matched) > 0
ORDER BY cardinality(found.matched) DESC, found.created_at DESC
LIMIT :limit;

-- name: visible_count$
SELECT count(*) FROM memory.visible(:tenant, :allowed, :now, :as_of, :layers, false);

-- name: record_events!
-- Facts for the bus, in the transaction that makes them true.
INSERT INTO memory.events (event_id, tenant_id, user_id, session_id, run_id, type, data)
SELECT * FROM unnest(:ids::text[], :tenants::text[], :users::text[], :sessions::text[], :runs::text[],
                     :types::text[], :datas::jsonb[]);

-- name: read_history
-- Every version of a readable memory and of the readable facts that it replaced or that replaced it, but for versions
-- from when it was none of the principal's.
WITH RECURSIVE asked AS (
    SELECT m.memory_id, m.superseded_by FROM memory.named(:tenant, :allowed, :now, :id) m
    ORDER BY (m.memory_id = :id) DESC, (m.owner_scope = :own) DESC, m.owner_scope LIMIT 1
), chain AS (
    SELECT memory_id, superseded_by FROM asked
    UNION
    SELECT m.memory_id, m.superseded_by FROM chain CROSS JOIN LATERAL (
        SELECT r.memory_id, r.superseded_by FROM memory.readable(:tenant, :allowed, :now) r
        WHERE r.superseded_by = chain.memory_id
        UNION ALL
        SELECT r.memory_id, r.superseded_by FROM memory.readable(:tenant, :allowed, :now) r
        WHERE r.memory_id = chain.superseded_by
        OFFSET 0
    ) m
)
SELECT h.memory_id, h.version, h.change, h.text, h.valid_from, h.valid_to, h.at
FROM chain CROSS JOIN LATERAL (
    SELECT * FROM memory.history h WHERE h.tenant_id = :tenant AND h.memory_id = chain.memory_id OFFSET 0
) h
WHERE h.scopes IS NULL OR h.scopes && :allowed
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
WITH there AS (
    SELECT r.memory_id FROM memory.readable(:tenant, :allowed, :now) r
    WHERE r.external_id = :external_id AND r.owner_scope = :owner
    UNION
    SELECT r.memory_id FROM memory.readable(:tenant, :allowed, :now) r
    WHERE r.content_hash = :content_hash AND r.owner_scope = :owner AND r.status <> 'superseded'
    UNION
    SELECT :twin
)
SELECT m.memory_id, m.scope_key, m.layer, m.content_hash, m.context_key, m.fact_key, m.valid_to,
       m.external_id IS NOT NULL AS is_object,
       m.external_id IS NOT DISTINCT FROM :external_id AND m.external_id IS NOT NULL AS is_external
FROM there CROSS JOIN LATERAL (
    SELECT r.* FROM memory.readable(:tenant, :allowed, :now) r WHERE r.memory_id = there.memory_id OFFSET 0
) m
WHERE m.owner_scope = :owner
  AND (m.external_id = :external_id
       OR (m.scope_key = :scope_key AND m.layer = :layer AND m.status <> 'superseded'
           AND (m.content_hash = :content_hash OR (m.memory_id = :twin AND m.version = :twin_version))));

-- name: find_tombstone^
-- Whether a text was forgotten as it is, or only with other case and punctuation; no row where neither.
SELECT bool_or(of_this_text) AS of_this_text FROM (
    SELECT true AS of_this_text FROM memory.tombstones
    WHERE tenant_id = :tenant AND owner_scope = :owner AND content_hash = :content_hash
    UNION ALL
    SELECT alike.content_hash = :content_hash FROM (
        SELECT * FROM memory.tombstones WHERE tenant_id = :tenant AND bare_hash = :bare_hash OFFSET 0
    ) alike
    WHERE alike.owner_scope = :owner
) found
HAVING count(*) > 0;

-- name: texts_of_terms
-- What an owner's memories say with just these terms.
SELECT m.text
FROM (SELECT * FROM memory.lexemes l
      WHERE memory.term_keys(l.tenant_id, tsvector_to_array(l.lexemes)) @> memory.term_keys(:tenant, :words::text[])
      OFFSET 0) l
CROSS JOIN LATERAL (
    SELECT * FROM memory.memories m WHERE m.tenant_id = :tenant AND m.memory_id = l.memory_id OFFSET 0
) m
WHERE l.tenant_id = :tenant AND l.lexemes = array_to_tsvector(:terms::text[])
  AND m.owner_scope = :owner AND m.status <> 'superseded' AND (m.expires_at IS NULL OR m.expires_at > :now);

-- name: lift_tombstone!
WITH found AS (
    SELECT tenant_id, owner_scope, content_hash FROM memory.tombstones
    WHERE tenant_id = :tenant AND owner_scope = :owner AND content_hash = :content_hash
    UNION
    SELECT alike.tenant_id, alike.owner_scope, alike.content_hash FROM (
        SELECT * FROM memory.tombstones WHERE tenant_id = :tenant AND bare_hash = :bare_hash OFFSET 0
    ) alike
    WHERE alike.owner_scope = :owner
)
DELETE FROM memory.tombstones t USING found
WHERE t.tenant_id = found.tenant_id AND t.owner_scope = found.owner_scope AND t.content_hash = found.content_hash;

-- name: drop_expired_in_the_way!
-- An expired memory holds no place; the sweep would take it later.
WITH there AS (
    SELECT tenant_id, memory_id FROM memory.memories
    WHERE tenant_id = :tenant AND content_hash = :content_hash AND owner_scope = :owner AND status <> 'superseded'
    UNION
    SELECT tenant_id, memory_id FROM memory.memories
    WHERE tenant_id = :tenant AND external_id = :external_id AND owner_scope = :owner
    UNION
    SELECT tenant_id, memory_id FROM memory.memories
    WHERE tenant_id = :tenant AND fact_key = :fact_key AND owner_scope = :owner
)
DELETE FROM memory.memories m USING there
WHERE m.tenant_id = there.tenant_id AND m.memory_id = there.memory_id AND m.expires_at <= :now;

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
-- The episodes that a superseded fact came from, or that say the same older thing, go cold with it; never another's.
WITH there AS (
    SELECT tenant_id, source_id AS memory_id FROM memory.sources WHERE tenant_id = :tenant AND memory_id = :memory
    UNION
    SELECT tenant_id, memory_id FROM memory.memories
    WHERE tenant_id = :tenant AND fact_key = :fact_key AND owner_scope = :owner AND scope_key = :scope_key
      AND valid_from <= :at
), cooled AS (
    UPDATE memory.memories m SET status = 'cold' FROM there
    WHERE m.tenant_id = there.tenant_id AND m.memory_id = there.memory_id
      AND m.status = 'active' AND m.layer = 'episodic' AND m.owner_scope = ANY (:allowed::text[])
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
-- The product's own object has a new text: same id, next version, in force again. Earlier versions keep their readers.
WITH told AS (
    UPDATE memory.history h SET scopes = m.scopes FROM memory.memories m
    WHERE m.tenant_id = :tenant AND m.memory_id = :memory AND m.scopes <> :scopes::text[]
      AND h.tenant_id = m.tenant_id AND h.memory_id = m.memory_id AND h.scopes IS NULL
), fresh AS (
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
SELECT :tenant, :memory, m.memory_id FROM memory.named(:tenant, :allowed, :now, :source) m
WHERE m.memory_id <> :memory
ORDER BY (m.memory_id = :source) DESC, (m.owner_scope = :owner) DESC LIMIT 1
ON CONFLICT DO NOTHING;

-- name: drop_expired
-- Expired memories of one tenant go, a page at a time; triggers take their points, usage and cached recalls.
WITH expired AS MATERIALIZED (
    SELECT tenant_id, memory_id FROM memory.memories
    WHERE tenant_id = :tenant AND expires_at <= :now ORDER BY expires_at LIMIT :limit
)
DELETE FROM memory.memories m USING expired
WHERE m.tenant_id = expired.tenant_id AND m.memory_id = expired.memory_id
RETURNING m.memory_id, m.user_id;

-- name: correct_memory^
-- What is null stays, but for ends that are removed. A text comes with everything that is derived from it.
WITH fresh AS (
    UPDATE memory.memories SET
        text = coalesce(:text, text), content_hash = coalesce(:content_hash, content_hash),
        trust = coalesce(:trust, trust), importance = coalesce(:importance, importance),
        confidence = coalesce(:confidence, confidence), tags = coalesce(:tags, tags),
        metadata = coalesce(:metadata, metadata),
        valid_to = CASE WHEN :endless::boolean THEN NULL ELSE coalesce(:valid_to, valid_to) END,
        expires_at = CASE WHEN :kept_for_good::boolean THEN NULL ELSE coalesce(:expires_at, expires_at) END,
        status = CASE WHEN :wake THEN 'active' ELSE status END,
        used_at = CASE WHEN :wake THEN :now ELSE used_at END
    WHERE tenant_id = :tenant AND memory_id = :memory
    RETURNING *
), terms AS (
    UPDATE memory.lexemes l SET lexemes = array_to_tsvector(:terms::text[])
    FROM fresh WHERE l.tenant_id = fresh.tenant_id AND l.memory_id = fresh.memory_id AND :terms::text[] IS NOT NULL
), version AS (
    INSERT INTO memory.history (tenant_id, memory_id, version, change, text, content_hash, valid_from, valid_to, at)
    SELECT tenant_id, memory_id, version, :change, text, content_hash, valid_from, valid_to, :now FROM fresh
    ON CONFLICT DO NOTHING
)
SELECT fresh.*, fresh.superseded_by AS successor, kin.sources
FROM fresh CROSS JOIN LATERAL memory.kin_of(:tenant, fresh.memory_id, NULL, :allowed, :now) kin;

-- name: first_end_of_sources$
-- When the first of what a memory was made from expires.
SELECT min(source.expires_at) FROM memory.sources s
CROSS JOIN LATERAL (
    SELECT m.expires_at FROM memory.memories m WHERE m.tenant_id = :tenant AND m.memory_id = s.source_id OFFSET 0
) source
WHERE s.memory_id = :memory AND s.tenant_id = :tenant;

-- name: twin_of$
-- Another memory that already holds the place that a changed text would take.
SELECT other.memory_id
FROM memory.memories m
CROSS JOIN LATERAL (
    SELECT o.* FROM memory.memories o
    WHERE o.tenant_id = :tenant AND o.content_hash = :content_hash AND o.owner_scope = m.owner_scope
      AND o.status <> 'superseded' OFFSET 0
) other
WHERE m.tenant_id = :tenant AND m.memory_id = :memory AND other.memory_id <> m.memory_id
  AND other.scope_key = m.scope_key AND other.layer = m.layer AND other.context_key = m.context_key
  AND other.external_id IS NOT DISTINCT FROM m.external_id;

-- name: graph_around
-- Every edge of the graphs that these memories belong to, with what may be made again and what is raw material. A
-- summary is made again only while everybody who reads it may read all that it was made from.
WITH RECURSIVE reached AS (
    SELECT unnest(:ids::text[]) AS memory_id
    UNION
    SELECT edge.memory_id FROM reached CROSS JOIN LATERAL (
        SELECT s.source_id AS memory_id FROM memory.sources s
        WHERE s.memory_id = reached.memory_id AND s.tenant_id = :tenant
        UNION ALL
        SELECT s.memory_id FROM memory.sources s WHERE s.source_id = reached.memory_id AND s.tenant_id = :tenant
        OFFSET 0
    ) edge
)
SELECT s.memory_id, s.source_id,
       derived.provenance_kind IN ('consolidation', 'distillation')
           AND bool_and(derived.scopes <@ source.scopes OR 'tenant' = ANY (source.scopes)) OVER (PARTITION BY s.memory_id) AS is_summary,
       (source.status = 'cold' OR source.layer IN ('episodic', 'session'))
           AND source.owner_scope = ANY (:owners::text[]) AS is_material
FROM reached
CROSS JOIN LATERAL (
    SELECT * FROM memory.sources s WHERE s.memory_id = reached.memory_id AND s.tenant_id = :tenant OFFSET 0
) s
CROSS JOIN LATERAL (
    SELECT * FROM memory.memories m WHERE m.tenant_id = :tenant AND m.memory_id = s.memory_id OFFSET 0
) derived
CROSS JOIN LATERAL (
    SELECT * FROM memory.memories m WHERE m.tenant_id = :tenant AND m.memory_id = s.source_id OFFSET 0
) source;

-- name: texts_to_bury
-- Every text that these memories ever had and that no other one of the owner has, but for those that go with them.
WITH gone AS (
    SELECT m.memory_id, m.owner_scope, m.content_hash, m.text FROM unnest(:ids::text[]) AS asked (id)
    CROSS JOIN LATERAL (
        SELECT * FROM memory.memories m WHERE m.tenant_id = :tenant AND m.memory_id = asked.id OFFSET 0
    ) m
), said AS (
    SELECT owner_scope, content_hash, text FROM gone
    UNION ALL
    SELECT gone.owner_scope, h.content_hash, h.text FROM gone CROSS JOIN LATERAL (
        SELECT * FROM memory.history h WHERE h.tenant_id = :tenant AND h.memory_id = gone.memory_id OFFSET 0
    ) h
    WHERE h.content_hash IS NOT NULL
)
SELECT DISTINCT ON (said.owner_scope, said.content_hash) said.owner_scope, said.content_hash, said.text FROM said
WHERE NOT EXISTS (
    SELECT 1 FROM memory.memories other
    WHERE other.tenant_id = :tenant AND other.content_hash = said.content_hash
      AND other.owner_scope = said.owner_scope AND other.status <> 'superseded'
      AND other.memory_id <> ALL (:going::text[])
    OFFSET 0);

-- name: bury$
-- Tombstones of texts, by both of their hashes; the number of new ones.
WITH buried AS (
    INSERT INTO memory.tombstones (tenant_id, owner_scope, content_hash, bare_hash, forgotten_at)
    SELECT :tenant, t.owner_scope, t.content_hash, t.bare_hash, :now
    FROM unnest(:owners::text[], :content_hashes::bytea[], :bare_hashes::bytea[])
        AS t (owner_scope, content_hash, bare_hash)
    ON CONFLICT DO NOTHING RETURNING 1
)
SELECT count(*) FROM buried;

-- name: scopes_of
SELECT DISTINCT unnest(m.scopes) AS scope FROM unnest(:ids::text[]) AS asked (id)
CROSS JOIN LATERAL (
    SELECT scopes FROM memory.memories WHERE tenant_id = :tenant AND memory_id = asked.id OFFSET 0
) m;

-- name: shared_among
-- Those of the ids that are the principal's to see, expired or not.
SELECT m.memory_id FROM unnest(:ids::text[]) AS asked (id)
CROSS JOIN LATERAL (
    SELECT r.memory_id FROM memory.readable(:tenant, :allowed, '-infinity') r WHERE r.memory_id = asked.id OFFSET 0
) m;

-- name: drop_candidates!
-- Candidates of distillations that hold a text that these memories have or had.
WITH asked AS (
    SELECT unnest(:ids::text[]) AS id
), said AS (
    SELECT m.text, m.content_hash FROM asked CROSS JOIN LATERAL (
        SELECT * FROM memory.memories WHERE tenant_id = :tenant AND memory_id = asked.id OFFSET 0
    ) m
    UNION
    SELECT h.text, h.content_hash FROM asked CROSS JOIN LATERAL (
        SELECT * FROM memory.history WHERE tenant_id = :tenant AND memory_id = asked.id OFFSET 0
    ) h
    WHERE h.text IS NOT NULL
), held AS MATERIALIZED (
    SELECT d.* FROM memory.jobs j CROSS JOIN LATERAL (
        SELECT * FROM memory.distil_texts WHERE job_id = j.job_id OFFSET 0
    ) d
    WHERE j.tenant_id = :tenant AND j.kind = 'distil'
), found AS (
    SELECT DISTINCT held.job_id, held.position FROM held JOIN said
        ON held.content_hash = said.content_hash OR strpos(lower(held.text), lower(said.text)) > 0
)
DELETE FROM memory.distil_texts d USING found WHERE d.job_id = found.job_id AND d.position = found.position;

-- name: delete_memories
-- Edges, terms and history go with them.
DELETE FROM memory.memories m USING (SELECT :tenant::text AS tenant_id, unnest(:ids::text[]) AS memory_id) asked
WHERE m.tenant_id = asked.tenant_id AND m.memory_id = asked.memory_id
RETURNING m.memory_id, m.user_id, m.owner_scope, m.session_id, m.run_id, m.chunks;

-- name: forget_successors!
UPDATE memory.memories m SET superseded_by = NULL
FROM (SELECT :tenant::text AS tenant_id, unnest(:ids::text[]) AS memory_id) asked
WHERE m.tenant_id = asked.tenant_id AND m.superseded_by = asked.memory_id;

-- name: forget_retrieved!
UPDATE memory.retrievals SET injected = ARRAY(SELECT id FROM unnest(injected) AS id WHERE id <> ALL (:ids::text[]))
WHERE retrieval_id = ANY (ARRAY(
    SELECT told.retrieval_id FROM unnest(:ids::text[]) AS asked (id)
    CROSS JOIN LATERAL (
        SELECT r.retrieval_id, r.tenant_id FROM memory.retrievals r WHERE r.injected @> ARRAY[asked.id] OFFSET 0
    ) told
    WHERE told.tenant_id = :tenant));

-- name: wake_memories!
-- What was made of them is gone; another's memories stay as they are.
WITH woken AS (
    UPDATE memory.memories m SET status = 'active', used_at = :now
    FROM (SELECT c.* FROM unnest(:ids::text[]) AS asked (id) CROSS JOIN LATERAL (
              SELECT tenant_id, memory_id, status, owner_scope FROM memory.memories
              WHERE tenant_id = :tenant AND memory_id = asked.id OFFSET 0) c
          WHERE c.status = 'cold' AND c.owner_scope = ANY (:owners::text[])) cold
    WHERE m.tenant_id = cold.tenant_id AND m.memory_id = cold.memory_id
    RETURNING m.tenant_id, m.memory_id, m.version, m.text, m.content_hash, m.valid_from, m.valid_to
)
INSERT INTO memory.history (tenant_id, memory_id, version, change, text, content_hash, valid_from, valid_to, at)
SELECT tenant_id, memory_id, version, 'woken', text, content_hash, valid_from, valid_to, :now FROM woken;

-- name: memories_among
-- Memories of a tenant for work inside the store, oldest first; no reader sees them from here.
SELECT m.*, m.superseded_by AS successor,
       ARRAY(SELECT s.source_id FROM memory.sources s
             WHERE s.memory_id = m.memory_id AND s.tenant_id = m.tenant_id ORDER BY 1) AS sources
FROM unnest(:ids::text[]) AS asked (id)
CROSS JOIN LATERAL (
    SELECT * FROM memory.memories WHERE tenant_id = :tenant AND memory_id = asked.id OFFSET 0
) m
ORDER BY m.created_at, m.memory_id;

-- name: rebuild_summary!
-- A summary without what was forgotten: a new text, and no earlier one in its history.
WITH fresh AS (
    UPDATE memory.memories SET text = :text, content_hash = :content_hash
    WHERE tenant_id = :tenant AND memory_id = :memory
    RETURNING tenant_id, memory_id, version, text, content_hash, valid_from, valid_to
), terms AS (
    UPDATE memory.lexemes l SET lexemes = array_to_tsvector(:terms::text[])
    FROM fresh WHERE l.tenant_id = fresh.tenant_id AND l.memory_id = fresh.memory_id
), wiped AS (
    UPDATE memory.history h SET text = NULL, content_hash = NULL
    FROM fresh WHERE h.tenant_id = fresh.tenant_id AND h.memory_id = fresh.memory_id AND :wipe
)
INSERT INTO memory.history (tenant_id, memory_id, version, change, text, content_hash, valid_from, valid_to, at)
SELECT tenant_id, memory_id, version, 'rebuilt', text, content_hash, valid_from, valid_to, :now FROM fresh
ON CONFLICT DO NOTHING;

-- name: owned_page
-- The next memories of an owner, whatever their status or expiry.
SELECT m.memory_id FROM memory.memories m
WHERE m.tenant_id COLLATE "C" = :tenant AND m.owner_scope = :owner ORDER BY m.memory_id LIMIT :limit;

-- name: mark_session_ended!
INSERT INTO memory.ended_sessions (tenant_id, session_id) VALUES (:tenant, :session) ON CONFLICT DO NOTHING;

-- name: has_session_ended$
SELECT EXISTS (SELECT 1 FROM memory.ended_sessions WHERE tenant_id = :tenant AND session_id = :session);

-- name: forget_recalls_of_session!
DELETE FROM memory.retrievals WHERE session_id = :session AND tenant_id = :tenant;

-- name: drop_ended_sessions!
DELETE FROM memory.ended_sessions WHERE ended_at < now() - make_interval(days => :days);

-- name: session_page
SELECT m.memory_id FROM memory.memories m
WHERE m.tenant_id = :tenant AND m.layer = 'session' AND m.session_id = :session ORDER BY m.memory_id LIMIT :limit;

-- name: forget_user!
-- What else names a user whose memories are erased: recalls, unfinished jobs, facts that were not sent yet.
WITH recalls AS (
    DELETE FROM memory.retrievals WHERE tenant_id = :tenant AND user_id = :user
), jobs AS (
    DELETE FROM memory.jobs WHERE tenant_id = :tenant AND user_id = :user AND kind = 'distil'
)
DELETE FROM memory.usage WHERE tenant_id = :tenant AND user_id = :user AND rows = 0 AND bytes = 0;

-- name: export_owned
-- Everything of an owner that its reader may see, superseded and cold too, in the order of ids.
SELECT m.*, kin.sources, kin.successor
FROM memory.readable(:tenant, :allowed, :now) m
CROSS JOIN LATERAL memory.kin_of(:tenant, m.memory_id, m.superseded_by, :allowed, :now) kin
WHERE m.tenant_id COLLATE "C" = :tenant AND m.owner_scope = :owner AND m.memory_id > coalesce(:after::text, '')
ORDER BY m.memory_id LIMIT :limit;

-- name: active_episodes
-- The oldest active episodes that a principal may see and change.
SELECT m.*, kin.sources, kin.successor
FROM unnest(:allowed::text[]) AS own (scope)
CROSS JOIN LATERAL (
    SELECT v.* FROM memory.visible(:tenant, :allowed, :now, :as_of, '{episodic}'::text[], false) v
    WHERE v.layer = 'episodic' AND v.status = 'active' AND v.owner_scope = own.scope OFFSET 0
) m
CROSS JOIN LATERAL memory.kin_of(:tenant, m.memory_id, m.superseded_by, :allowed, :now) kin
WHERE (m.created_at, m.memory_id) > (:after_at::timestamptz, :after_id::text)
ORDER BY m.created_at, m.memory_id LIMIT :limit;

-- name: places_to_consolidate
-- Where at least so many episodes in force were neither used nor changed for long: whose, and with which scopes.
SELECT m.tenant_id, m.owner_scope, m.scope_key, min(m.scopes) AS scopes FROM memory.memories m
WHERE m.layer = 'episodic' AND m.status = 'active' AND m.used_at < :since AND m.updated_at < :since
  AND m.valid_from <= :now AND (m.valid_to IS NULL OR m.valid_to > :now)
  AND (m.expires_at IS NULL OR m.expires_at > :now) AND char_length(m.text) <= :chars
  AND (m.tenant_id, m.owner_scope, m.scope_key) > (:after_tenant::text, :after_owner::text, :after_scope_key::bytea)
GROUP BY m.tenant_id, m.owner_scope, m.scope_key HAVING count(*) >= :least
ORDER BY m.tenant_id, m.owner_scope, m.scope_key LIMIT :limit;

-- name: own_places_to_consolidate
-- The same among what a principal may change.
SELECT m.tenant_id, m.owner_scope, m.scope_key, min(m.scopes) AS scopes
FROM (SELECT :tenant::text AS tenant_id, unnest(:owners::text[]) AS owner_scope) asked
JOIN memory.memories m ON m.tenant_id = asked.tenant_id AND m.owner_scope = asked.owner_scope
WHERE m.layer = 'episodic' AND m.status = 'active' AND m.used_at < :since AND m.updated_at < :since
  AND m.valid_from <= :now AND (m.valid_to IS NULL OR m.valid_to > :now)
  AND (m.expires_at IS NULL OR m.expires_at > :now) AND char_length(m.text) <= :chars
GROUP BY m.tenant_id, m.owner_scope, m.scope_key HAVING count(*) >= :least
ORDER BY m.tenant_id, m.owner_scope, m.scope_key LIMIT :limit;

-- name: quiet_episodes
-- The oldest of them in one such place, after one of them.
SELECT m.*, kin.sources, kin.successor
FROM memory.visible(:tenant, :allowed, :now, :now, '{episodic}'::text[], false) m
CROSS JOIN LATERAL memory.kin_of(:tenant, m.memory_id, m.superseded_by, :allowed, :now) kin
WHERE m.status = 'active' AND m.owner_scope = :owner AND m.scope_key = :scope_key
  AND m.used_at < :since AND m.updated_at < :since AND char_length(m.text) <= :chars
  AND (m.created_at, m.memory_id) > (:after_at::timestamptz, :after_id::text)
ORDER BY m.created_at, m.memory_id LIMIT :limit;

-- name: cool_memories
-- Sources of a summary, or long unused memories, leave the index; nothing of them goes.
WITH cooled AS (
    UPDATE memory.memories m SET status = 'cold'
    FROM (SELECT :tenant::text AS tenant_id, k.* FROM unnest(:ids::text[], :versions::integer[]) AS k (memory_id, version)
          OFFSET 0) known
    WHERE m.tenant_id = known.tenant_id AND m.memory_id = known.memory_id AND m.version = known.version
      AND m.status = 'active'
    RETURNING m.tenant_id, m.memory_id, m.version, m.text, m.content_hash, m.valid_from, m.valid_to
), versions AS (
    INSERT INTO memory.history (tenant_id, memory_id, version, change, text, content_hash, valid_from, valid_to, at)
    SELECT tenant_id, memory_id, version, 'cooled', text, content_hash, valid_from, valid_to, :now FROM cooled
)
SELECT memory_id FROM cooled;

-- name: add_sources!
INSERT INTO memory.sources (tenant_id, memory_id, source_id) SELECT :tenant, :memory, unnest(:ids::text[]);

-- name: has_current_fact$
SELECT EXISTS (SELECT 1 FROM memory.readable(:tenant, :allowed, :now) m
               WHERE m.fact_key = :fact_key AND m.owner_scope = :owner AND m.layer = :layer);

-- name: same_summary$
-- A summary in force that says the same already.
SELECT memory_id FROM memory.memories
WHERE tenant_id = :tenant AND content_hash = :content_hash AND owner_scope = :owner AND scope_key = :scope_key
  AND layer = 'semantic' AND provenance_kind = 'consolidation' AND status <> 'superseded'
  AND (expires_at IS NULL OR expires_at > :now);

-- name: due_in_turn
-- Whose turn it is: due work that no relay holds, of each tenant the oldest first, tenants in turn and from the one after
-- :after. Brief texts, up to so many bytes in sum, or long ones; embedding everything again gives way to what is new.
WITH RECURSIVE tenants AS (
    (SELECT o.tenant_id FROM memory.index_outbox o ORDER BY o.tenant_id LIMIT 1)
    UNION ALL
    SELECT (SELECT o.tenant_id FROM memory.index_outbox o WHERE o.tenant_id > t.tenant_id ORDER BY o.tenant_id LIMIT 1)
    FROM tenants t WHERE t.tenant_id IS NOT NULL
), share AS (
    SELECT greatest(:least::integer, ceil(:limit::float8 / greatest(count(tenant_id), 1)))::integer AS most FROM tenants
), ranked AS (
    SELECT due.*, row_number() OVER (PARTITION BY due.tenant_id, due.anew ORDER BY due.enqueued_at, due.memory_id) AS turn
    FROM tenants t CROSS JOIN LATERAL (
        SELECT o.tenant_id, o.memory_id, o.anew, o.enqueued_at, o.bytes FROM memory.index_outbox o
        WHERE o.tenant_id = t.tenant_id AND o.is_long = :is_long::boolean
          AND o.not_before <= now() AND (o.leased_until IS NULL OR o.leased_until < now())
        ORDER BY o.anew, o.enqueued_at LIMIT (SELECT most FROM share)
    ) due
), in_turn AS (
    SELECT tenant_id, memory_id, row_number() OVER turns AS place, sum(bytes) OVER turns - bytes AS bytes_before
    FROM ranked WINDOW turns AS (ORDER BY anew, turn, tenant_id <= :after::text, tenant_id)
)
SELECT tenant_id, memory_id FROM in_turn WHERE place <= :limit AND bytes_before < :most_bytes::bigint ORDER BY place;

-- name: lease_index_work
-- Those of these rows that no relay holds, of one size or of both. The memory beside one is null where no points belong.
-- A relay whose embedder is not the index's any more gets none.
WITH due AS (
    SELECT o.tenant_id, o.memory_id
    FROM unnest(:tenants::text[], :ids::text[]) AS asked (tenant_id, memory_id)
    JOIN memory.index_outbox o ON o.tenant_id = asked.tenant_id AND o.memory_id = asked.memory_id
    WHERE (o.leased_until IS NULL OR o.leased_until < now())
      AND (:is_long::boolean IS NULL OR o.is_long = :is_long)
      AND NOT EXISTS (SELECT 1 FROM memory.embedding e WHERE e.digest <> :embedder)
    FOR UPDATE OF o SKIP LOCKED
), leased AS (
    UPDATE memory.index_outbox o
    SET leased_until = now() + make_interval(secs => :lease_s), lease = nextval('memory.index_leases'),
        attempts = o.attempts + 1
    FROM due WHERE o.tenant_id = due.tenant_id AND o.memory_id = due.memory_id
    RETURNING o.tenant_id, o.memory_id, o.generation, o.lease, o.attempts
)
SELECT l.tenant_id, l.memory_id, l.generation, l.lease, l.attempts,
       m.version, m.text, m.subject, m.attribute, m.scopes, m.layer, m.valid_from, m.valid_to, m.expires_at,
       coalesce(m.chunks, 0) AS chunks
FROM leased l
LEFT JOIN memory.memories m ON m.tenant_id = l.tenant_id AND m.memory_id = l.memory_id
    AND m.status <> 'cold' AND (m.expires_at IS NULL OR m.expires_at > now());

-- name: held_index_work
-- Those of these leases that last for so long.
SELECT o.lease FROM unnest(:tenants::text[], :ids::text[], :leases::bigint[]) AS held (tenant_id, memory_id, lease)
JOIN memory.index_outbox o USING (tenant_id, memory_id, lease)
WHERE o.leased_until > now() + make_interval(secs => :lasting_s);

-- name: prolong_index_work
-- Those of these leases that nobody took over, and that no deletion ended once they had lapsed: they begin anew.
UPDATE memory.index_outbox o SET leased_until = now() + make_interval(secs => :lease_s)
FROM unnest(:ids::text[], :leases::bigint[]) AS held (memory_id, lease)
WHERE o.tenant_id = :tenant AND o.memory_id = held.memory_id AND o.lease = held.lease
RETURNING o.lease;

-- name: settle_index_work!
-- What was done goes, unless the memory changed meanwhile: then it is due again at once. What searches found before the
-- index showed it is out of date.
WITH done AS MATERIALIZED (
    SELECT :tenant::text AS tenant_id, d.*
    FROM unnest(:ids::text[], :generations::bigint[], :versions::integer[], :chunks::integer[])
        AS d (memory_id, generation, version, chunks)
), settled AS (
    DELETE FROM memory.index_outbox o USING done
    WHERE o.tenant_id = done.tenant_id AND o.memory_id = done.memory_id AND o.generation = done.generation
), changed AS (
    UPDATE memory.index_outbox o SET leased_until = NULL, attempts = 0 FROM done
    WHERE o.tenant_id = done.tenant_id AND o.memory_id = done.memory_id AND o.generation <> done.generation
), shown AS (
    INSERT INTO memory.scope_epochs AS e (tenant_id, scope)
    SELECT DISTINCT m.tenant_id, scope
    FROM done JOIN memory.memories m USING (tenant_id, memory_id), unnest(m.scopes) AS scope
    ORDER BY 1, 2
    ON CONFLICT (tenant_id, scope) DO UPDATE SET epoch = e.epoch + 1
)
UPDATE memory.memories m
SET chunks = done.chunks, indexed_version = done.version,
    embedder = CASE WHEN done.version IS NULL THEN NULL ELSE :embedder END
FROM done WHERE m.tenant_id = done.tenant_id AND m.memory_id = done.memory_id
  AND NOT EXISTS (SELECT 1 FROM memory.embedding e WHERE e.digest <> :embedder);

-- name: postpone_index_work!
UPDATE memory.index_outbox o
SET leased_until = NULL, error = :error, not_before = now() + make_interval(secs => asked.delay_s)
FROM (SELECT :tenant::text AS tenant_id, p.*
      FROM unnest(:ids::text[], :delays_s::double precision[]) AS p (memory_id, delay_s) OFFSET 0) asked
WHERE o.tenant_id = asked.tenant_id AND o.memory_id = asked.memory_id;

-- name: settle_deleted$
-- Points of deleted memories were removed; the number of rows that a relay still holds, and so may write again.
-- Where another embedder took over the index, that is all of them: its relay removes their points.
WITH own AS (
    SELECT NOT EXISTS (SELECT 1 FROM memory.embedding e WHERE e.digest <> :embedder) AS is_current
), asked AS MATERIALIZED (
    SELECT :tenant::text AS tenant_id, unnest(:ids::text[]) AS memory_id
), settled AS (
    DELETE FROM memory.index_outbox o USING own, asked
    WHERE own.is_current AND o.tenant_id = asked.tenant_id AND o.memory_id = asked.memory_id
      AND (o.leased_until IS NULL OR o.leased_until < now())
      AND NOT EXISTS (
          SELECT 1 FROM memory.memories m WHERE m.tenant_id = o.tenant_id AND m.memory_id = o.memory_id OFFSET 0)
)
SELECT count(*) FROM own, asked JOIN memory.index_outbox o USING (tenant_id, memory_id)
WHERE o.leased_until >= now() OR NOT own.is_current;

-- name: unremoved
-- Deleted memories of a tenant whose points may still be there.
SELECT o.memory_id FROM memory.index_outbox o
WHERE o.tenant_id = :tenant
  AND NOT EXISTS (
      SELECT 1 FROM memory.memories m WHERE m.tenant_id = o.tenant_id AND m.memory_id = o.memory_id OFFSET 0);

-- name: index_outbox_age^
-- What failed again and again is counted apart: it is one memory's trouble, not the relay's. Embedding everything again
-- takes its time.
SELECT count(*) AS waiting, count(*) FILTER (WHERE attempts >= :hopeless) AS failing,
       coalesce(extract(epoch FROM now() - min(enqueued_at) FILTER (WHERE attempts < :hopeless AND NOT anew)), 0)
           ::double precision AS oldest_s
FROM memory.index_outbox;

-- name: lock_unsent_facts
-- The oldest facts that no other relay is sending.
SELECT event_id, tenant_id, user_id, session_id, run_id, type, data, occurred_at FROM memory.events
ORDER BY occurred_at, event_id LIMIT :limit FOR UPDATE SKIP LOCKED;

-- name: drop_sent_facts!
DELETE FROM memory.events WHERE event_id = ANY (:ids::text[]);

-- name: unsent_facts^
SELECT count(*) AS unsent, coalesce(extract(epoch FROM now() - min(occurred_at)), 0)::double precision AS oldest_s
FROM memory.events;

-- name: read_embedding^
SELECT name, dimensions, digest, enqueued, from_scratch FROM memory.embedding;

-- name: has_points$
SELECT EXISTS (SELECT 1 FROM memory.memories
               WHERE chunks > 0 AND status <> 'cold' AND (expires_at IS NULL OR expires_at > now()));

-- name: set_embedding!
INSERT INTO memory.embedding (name, dimensions, digest, from_scratch) VALUES (:name, :dimensions, :digest, :from_scratch)
ON CONFLICT (only_row) DO UPDATE
SET name = excluded.name, dimensions = excluded.dimensions, digest = excluded.digest, set_at = now(),
    enqueued = false, from_scratch = excluded.from_scratch, whole_at = NULL;

-- name: enqueue_everything!
-- What a tenant has in the index is to be embedded again, after what is new.
INSERT INTO memory.index_outbox AS o (tenant_id, memory_id, anew)
SELECT tenant_id, memory_id, true FROM memory.memories
WHERE tenant_id = :tenant AND status <> 'cold' AND (:from_scratch::boolean OR embedder IS DISTINCT FROM :digest)
ORDER BY memory_id
ON CONFLICT (tenant_id, memory_id) DO UPDATE
SET generation = o.generation + 1, attempts = 0, not_before = now(), anew = true;

-- name: everything_is_enqueued!
UPDATE memory.embedding SET enqueued = true WHERE digest = :digest;

-- name: index_is_whole$
-- What failed again and again is one memory's trouble and makes no index incomplete for the others.
UPDATE memory.embedding SET whole_at = now()
WHERE whole_at IS NULL AND enqueued AND digest = :digest
  AND NOT EXISTS (SELECT 1 FROM memory.index_outbox WHERE anew AND attempts < :hopeless)
RETURNING only_row;

-- name: index_state^
SELECT coalesce(max(e.digest) = :digest, true) AS is_current, coalesce(bool_and(e.whole_at IS NOT NULL), true) AS is_whole,
       CASE WHEN bool_and(e.whole_at IS NOT NULL) THEN 0
            ELSE (SELECT count(*) FROM memory.index_outbox WHERE anew AND attempts < :hopeless) END AS left
FROM memory.embedding e;

-- name: next_tenant$
SELECT tenant_id FROM memory.usage WHERE user_id = '' AND tenant_id > :after ORDER BY tenant_id LIMIT 1;

-- name: indexable_page
SELECT memory_id FROM memory.memories
WHERE tenant_id = :tenant AND memory_id > :after AND status <> 'cold' AND (expires_at IS NULL OR expires_at > now())
ORDER BY memory_id LIMIT :limit;

-- name: wanted_points
-- What the index must hold of these memories, but for what waits in the outbox; both in one snapshot.
WITH asked AS MATERIALIZED (
    SELECT :tenant::text AS tenant_id, unnest(:ids::text[]) AS memory_id
)
SELECT m.memory_id, m.version, false AS waits,
       greatest(m.chunks, CASE WHEN m.indexed_version IS NULL THEN 1 ELSE 0 END) AS points
FROM asked JOIN memory.memories m USING (tenant_id, memory_id)
WHERE m.status <> 'cold' AND (m.expires_at IS NULL OR m.expires_at > now())
  AND NOT EXISTS (
      SELECT 1 FROM memory.index_outbox o WHERE o.tenant_id = m.tenant_id AND o.memory_id = m.memory_id OFFSET 0)
UNION ALL
SELECT o.memory_id, NULL, true, NULL FROM asked JOIN memory.index_outbox o USING (tenant_id, memory_id);

-- name: unknown_points
-- Those of these memories of which the index must hold nothing, but for what waits in the outbox.
SELECT held.tenant_id, held.memory_id FROM unnest(:tenants::text[], :ids::text[]) AS held (tenant_id, memory_id)
WHERE NOT EXISTS (SELECT 1 FROM memory.memories m
                  WHERE m.tenant_id = held.tenant_id AND m.memory_id = held.memory_id
                    AND m.status <> 'cold' AND (m.expires_at IS NULL OR m.expires_at > now()))
  AND NOT EXISTS (SELECT 1 FROM memory.index_outbox o
                  WHERE o.tenant_id = held.tenant_id AND o.memory_id = held.memory_id);

-- name: waiting_among
SELECT o.memory_id FROM (SELECT :tenant::text AS tenant_id, unnest(:ids::text[]) AS memory_id) asked
JOIN memory.index_outbox o USING (tenant_id, memory_id);

-- name: enqueue_memories!
-- The row is told how many points there are: the relay removes those that are too many.
WITH held AS MATERIALIZED (
    SELECT :tenant::text AS tenant_id, h.* FROM unnest(:ids::text[], :points::integer[]) AS h (memory_id, points)
), told AS (
    UPDATE memory.memories m SET chunks = held.points FROM held
    WHERE m.tenant_id = held.tenant_id AND m.memory_id = held.memory_id
)
INSERT INTO memory.index_outbox AS o (tenant_id, memory_id) SELECT tenant_id, memory_id FROM held
ON CONFLICT (tenant_id, memory_id) DO UPDATE SET generation = o.generation + 1, not_before = now();

-- name: tenants_with_expired
-- Whose the memories are that expired first: so many of these, and of so many tenants.
SELECT DISTINCT tenant_id FROM (
    SELECT tenant_id FROM memory.memories WHERE expires_at <= :now ORDER BY expires_at LIMIT :memories) expired
LIMIT :limit;

-- name: long_unused
-- Active memories in the order of their last use, a page at a time.
SELECT m.*, '{}'::text[] AS sources, m.superseded_by AS successor FROM memory.memories m
WHERE m.status = 'active' AND m.used_at < :before AND (m.used_at, m.tenant_id, m.memory_id)
    > (:after_at::timestamptz, :after_tenant::text, :after_id::text)
ORDER BY m.used_at, m.tenant_id, m.memory_id LIMIT :limit;

-- name: tenants_with_uses
-- So many tenants with recalls that are still to be counted, each looked up after the one before.
WITH RECURSIVE uncounted AS (
    (SELECT tenant_id, 1 AS place FROM memory.retrievals WHERE NOT counted ORDER BY tenant_id COLLATE "C" LIMIT 1)
    UNION ALL
    SELECT following.tenant_id, u.place + 1 FROM uncounted u CROSS JOIN LATERAL (
        SELECT r.tenant_id FROM memory.retrievals r WHERE NOT r.counted AND r.tenant_id COLLATE "C" > u.tenant_id
        ORDER BY r.tenant_id COLLATE "C" LIMIT 1
    ) following
    WHERE u.place < :limit
)
SELECT tenant_id FROM uncounted;

-- name: count_uses!
-- What a recall put before a model was used then.
WITH counted AS (
    UPDATE memory.retrievals SET counted = true WHERE tenant_id COLLATE "C" = :tenant AND NOT counted
    RETURNING tenant_id, injected, created_at
), used AS (
    SELECT tenant_id, id, max(created_at) AS at FROM counted, unnest(injected) AS id GROUP BY tenant_id, id
)
UPDATE memory.memories m SET used_at = used.at FROM used
WHERE m.tenant_id = used.tenant_id AND m.memory_id = used.id AND m.used_at < used.at;

-- name: drop_old_retrievals!
DELETE FROM memory.retrievals WHERE created_at < now() - make_interval(days => :days);

-- name: drop_old_jobs!
-- Receipts are kept for a time; what holds texts, or was left unfinished, goes sooner.
WITH receipts AS (
    DELETE FROM memory.jobs
    WHERE done AND kind <> 'distil' AND updated_at < now() - make_interval(days => :receipt_days)
)
DELETE FROM memory.jobs
WHERE (NOT done OR kind = 'distil') AND updated_at < now() - make_interval(days => :unfinished_days);

-- name: create_job!
INSERT INTO memory.jobs (job_id, tenant_id, user_id, kind, state, receipt, done)
VALUES (:job, :tenant, :user, :kind, :state, :receipt, :done);

-- name: lease_job^
-- The right to work on a job of a principal's own, for a time; each grant has a higher fence.
UPDATE memory.jobs SET leased_until = now() + make_interval(secs => :lease_s), fence = fence + 1
WHERE job_id = :job AND tenant_id = :tenant AND user_id = :user AND kind = :kind AND NOT done
  AND (leased_until IS NULL OR leased_until < now())
RETURNING job_id, fence, state, receipt;

-- name: release_jobs!
UPDATE memory.jobs SET leased_until = NULL WHERE leased_until IS NOT NULL;

-- name: read_job^
SELECT job_id, kind, done, state, receipt, leased_until > now() AS leased FROM memory.jobs
WHERE job_id = :job AND tenant_id = :tenant AND user_id = :user AND kind = :kind;

-- name: read_receipt^
-- A deletion's receipt, by its own id or by that of a memory that it took; an erasure that no slice was saved of has none yet.
SELECT j.job_id, j.receipt FROM (
    SELECT * FROM memory.jobs WHERE job_id = :id
    UNION ALL
    SELECT * FROM memory.jobs WHERE receipt -> 'deleted' ? :id AND job_id <> :id
    OFFSET 0
) j
WHERE j.tenant_id = :tenant AND j.user_id = :user AND j.kind IN ('delete', 'erase_user') AND j.receipt <> '{}'
ORDER BY j.created_at DESC LIMIT 1;

-- name: complete_receipt!
UPDATE memory.jobs SET receipt = receipt || '{"complete": true}'
WHERE job_id = :job AND tenant_id = :tenant AND user_id = :user AND kind = 'delete';

-- name: note_job$
-- In the transaction that did a part of it, by the holder of the newest grant, who goes on.
UPDATE memory.jobs SET state = :state, receipt = :receipt, updated_at = now()
WHERE job_id = :job AND fence = :fence AND NOT done RETURNING job_id;

-- name: save_job$
-- Written only by the holder of the newest grant.
UPDATE memory.jobs SET state = :state, receipt = :receipt, done = :done, leased_until = NULL, updated_at = now()
WHERE job_id = :job AND fence = :fence RETURNING job_id;

-- name: add_candidates!
INSERT INTO memory.distil_texts (job_id, position, text, content_hash)
SELECT :job, * FROM unnest(:positions::integer[], :texts::text[], :hashes::bytea[]);

-- name: candidates
SELECT position, text, weight, vector, topic, selected FROM memory.distil_texts WHERE job_id = :job ORDER BY position;

-- name: drop_candidate_positions!
DELETE FROM memory.distil_texts WHERE job_id = :job AND position = ANY (:positions::integer[]);

-- name: weigh_candidates!
UPDATE memory.distil_texts t SET weight = w.weight
FROM unnest(:positions::integer[], :weights::integer[]) AS w (position, weight)
WHERE t.job_id = :job AND t.position = w.position;

-- name: embed_candidates!
UPDATE memory.distil_texts t SET vector = v.vector
FROM unnest(:positions::integer[], :vectors::bytea[]) AS v (position, vector)
WHERE t.job_id = :job AND t.position = v.position;

-- name: sort_candidates!
UPDATE memory.distil_texts t SET topic = s.topic
FROM unnest(:positions::integer[], :topics::integer[]) AS s (position, topic)
WHERE t.job_id = :job AND t.position = s.position;

-- name: select_candidates!
UPDATE memory.distil_texts SET selected = position = ANY (:positions::integer[]) WHERE job_id = :job;

-- name: reword_candidates!
UPDATE memory.distil_texts t SET text = r.text, content_hash = r.content_hash
FROM unnest(:positions::integer[], :texts::text[], :hashes::bytea[]) AS r (position, text, content_hash)
WHERE t.job_id = :job AND t.position = r.position;

-- name: injected_texts
-- What recalls of a session returned, as far as the principal may still see it.
SELECT m.memory_id, m.text
FROM (SELECT DISTINCT told.id FROM memory.retrievals r CROSS JOIN LATERAL unnest(r.injected) AS told (id)
      WHERE r.session_id = :session AND r.tenant_id = :tenant) told
CROSS JOIN LATERAL (
    SELECT r.memory_id, r.text FROM memory.readable(:tenant, :allowed, :now) r WHERE r.memory_id = told.id OFFSET 0
) m
LIMIT :limit;

-- name: release_index_work!
UPDATE memory.index_outbox SET leased_until = NULL WHERE leased_until IS NOT NULL;

-- name: record_recall!
-- What a recall told, and the fact for the bus that it did, in one statement. It does not wait for the disk: should
-- PostgreSQL crash within that moment, a recall cannot be rewarded, and nothing else is lost.
WITH quick AS (
    SELECT set_config('synchronous_commit', 'off', true)
), told AS (
    INSERT INTO memory.retrievals (retrieval_id, tenant_id, user_id, session_id, kind, injected)
    SELECT :retrieval, :tenant, :user, :session, :kind, :injected FROM quick
)
INSERT INTO memory.events (event_id, tenant_id, user_id, session_id, type, data)
SELECT :event, :tenant, :user, :session, 'memory.recalled', :data FROM quick;

-- name: reward_retrieval^
-- Rewarded once, by the principal whose recall it was.
UPDATE memory.retrievals SET reward = :reward, rewarded_at = now()
WHERE retrieval_id = :retrieval AND tenant_id = :tenant AND user_id = :user AND reward IS NULL
RETURNING injected;

-- name: has_retrieval$
SELECT EXISTS (SELECT 1 FROM memory.retrievals
               WHERE retrieval_id = :retrieval AND tenant_id = :tenant AND user_id = :user);

-- name: utilities
-- How useful those of the ids have proved that the principal may still read.
SELECT m.memory_id, m.q FROM unnest(:ids::text[]) AS asked (id)
CROSS JOIN LATERAL (
    SELECT r.memory_id, r.q FROM memory.readable(:tenant, :allowed, :now) r WHERE r.memory_id = asked.id OFFSET 0
) m;

-- name: set_utilities!
-- Utility is no version: neither readers nor the index notice it.
UPDATE memory.memories m SET q = learned.q, visits = m.visits + 1
FROM (SELECT :tenant::text AS tenant_id, l.* FROM unnest(:ids::text[], :qs::double precision[]) AS l (id, q)
      OFFSET 0) learned
WHERE m.tenant_id = learned.tenant_id AND m.memory_id = learned.id;

-- name: calibrations
SELECT embedder, set_hash, dense_threshold, lexical_threshold FROM memory.calibrations ORDER BY calibrated_at DESC;

-- name: calibrate!
INSERT INTO memory.calibrations (embedder, set_hash, target_rate, dense_threshold, lexical_threshold, measured)
VALUES (:embedder, :set_hash, :target_rate, :dense, :lexical, :measured)
ON CONFLICT (embedder) DO UPDATE SET
    set_hash = excluded.set_hash, target_rate = excluded.target_rate, dense_threshold = excluded.dense_threshold,
    lexical_threshold = excluded.lexical_threshold, measured = excluded.measured, calibrated_at = now();

-- name: forget_calibrations!
DELETE FROM memory.calibrations;

-- name: shorten_lives!
UPDATE memory.memories m SET expires_at = :expires_at
FROM (SELECT :tenant::text AS tenant_id, unnest(:ids::text[]) AS memory_id) asked
WHERE m.tenant_id = asked.tenant_id AND m.memory_id = asked.memory_id
  AND (m.expires_at IS NULL OR m.expires_at > :expires_at);

-- name: take_lease^
-- Work that is due and that nobody holds; each grant has a higher fence.
UPDATE memory.leases l SET fence = l.fence + 1, leased_until = now() + make_interval(secs => :lease_s)
FROM (SELECT work FROM memory.leases
      WHERE work = :work AND due_at <= now() AND (leased_until IS NULL OR leased_until < now())
      FOR UPDATE SKIP LOCKED) due
WHERE l.work = due.work
RETURNING l.fence, l.state;

-- name: keep_lease$
-- Written only by the holder of the newest grant, and not after it lapsed.
UPDATE memory.leases
SET leased_until = now() + make_interval(secs => :lease_s), progressed_at = now(), state = :state
WHERE work = :work AND fence = :fence AND leased_until > now() RETURNING work;

-- name: finish_lease$
UPDATE memory.leases
SET leased_until = NULL, progressed_at = now(), due_at = now() + make_interval(secs => :again_in_s), state = :state
WHERE work = :work AND fence = :fence AND leased_until > now() RETURNING work;

-- name: give_lease_back!
UPDATE memory.leases SET leased_until = NULL WHERE work = :work AND fence = :fence;

-- name: hold_lease$
-- In the transaction of a write: nobody takes the lease before it ends, and it does not stand still for long.
SELECT set_config('idle_in_transaction_session_timeout', '30s', true) FROM memory.leases
WHERE work = :work AND fence = :fence AND leased_until > clock_timestamp() FOR SHARE;

-- name: overdue$
SELECT greatest(0, extract(epoch FROM now() - greatest(due_at, progressed_at)))::double precision
FROM memory.leases WHERE work = :work;

-- name: hasten!
UPDATE memory.leases SET due_at = now() WHERE work = :work AND due_at > now();

-- name: release_leases!
UPDATE memory.leases SET leased_until = NULL WHERE leased_until IS NOT NULL;
