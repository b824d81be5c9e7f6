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
