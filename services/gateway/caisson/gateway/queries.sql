-- Every statement of the ledger. All time is the database's now(); a worker's write carries worker, run and fence.
--
-- COLLATE "C" names the index that a statement is to take: others that give the same rows would go through all that has
-- finished, or through everybody's. Ids are ASCII, so that it is their order either way.

-- name: authenticate^
-- The key by its id, with the tenant that the request is about (null while it does not exist).
SELECT k.key_id, k.kind, k.name, k.tenant_id AS bound_tenant, k.secret_hash,
       t.tenant_id, t.uid, t.max_concurrency, t.max_attempts, t.retention_days, t.limits, t.ceilings,
       t.created_at, t.updated_at
FROM ledger.api_keys k
LEFT JOIN ledger.tenants t ON t.tenant_id = coalesce(k.tenant_id, :tenant)
WHERE k.key_id = :key_id AND k.revoked_at IS NULL;

-- name: create_key!
INSERT INTO ledger.api_keys (key_id, kind, name, tenant_id, secret_hash)
VALUES (:key_id, :kind, :name, :tenant, :secret_hash);

-- name: list_keys
-- Newest first; a tenant's own keys, or every key where tenant is null.
SELECT key_id, kind, name, tenant_id, created_at, revoked_at
FROM (
    (SELECT * FROM ledger.api_keys
     WHERE :tenant::text IS NULL AND (:prefix::text IS NULL OR starts_with(key_id, :prefix))
       AND (:before::text IS NULL OR key_id < :before)
     ORDER BY key_id DESC LIMIT :limit)
    UNION ALL
    (SELECT * FROM ledger.api_keys
     WHERE tenant_id = :tenant AND (:prefix::text IS NULL OR starts_with(key_id, :prefix))
       AND (:before::text IS NULL OR key_id < :before)
     ORDER BY key_id COLLATE "C" DESC LIMIT :limit)
) k
ORDER BY key_id DESC LIMIT :limit;

-- name: revoke_key$
UPDATE ledger.api_keys SET revoked_at = coalesce(revoked_at, now())
WHERE key_id = :key_id AND (:tenant::text IS NULL OR tenant_id = :tenant)
RETURNING key_id;

-- name: lock_uids$
-- Serialises the allocation of uids.
SELECT pg_advisory_xact_lock(7126481);

-- name: create_tenant!
-- Takes the next uid. The CHECK refuses the one after the last.
INSERT INTO ledger.tenants (tenant_id, uid)
SELECT :tenant, coalesce(max(uid) + 1, 10000) FROM ledger.tenants
ON CONFLICT (tenant_id) DO NOTHING;

-- name: get_tenant^
SELECT tenant_id, uid, max_concurrency, max_attempts, retention_days, limits, ceilings, created_at, updated_at
FROM ledger.tenants WHERE tenant_id = :tenant;

-- name: change_tenant^
UPDATE ledger.tenants
SET max_concurrency = :max_concurrency, max_attempts = :max_attempts, retention_days = :retention_days,
    limits = :limits, ceilings = :ceilings, updated_at = now()
WHERE tenant_id = :tenant
RETURNING tenant_id, uid, max_concurrency, max_attempts, retention_days, limits, ceilings, created_at, updated_at;

-- name: put_credential!
INSERT INTO ledger.credentials (tenant_id, upstream, sealed) VALUES (:tenant, :upstream, :sealed)
ON CONFLICT (tenant_id, upstream) DO UPDATE SET sealed = excluded.sealed, updated_at = now();

-- name: delete_credential$
DELETE FROM ledger.credentials WHERE tenant_id = :tenant AND upstream = :upstream RETURNING upstream;

-- name: create_session^
-- The id of one that was deleted is never used again.
INSERT INTO ledger.sessions AS s (session_id, tenant_id, user_id, metadata)
VALUES (:session, :tenant, :user, :metadata)
ON CONFLICT (session_id) DO UPDATE SET session_id = excluded.session_id WHERE s.deleting_at IS NULL
RETURNING session_id, tenant_id, user_id, metadata, created_at, deleting_at;

-- name: get_session^
SELECT session_id, tenant_id, user_id, metadata, created_at, deleting_at
FROM (SELECT * FROM ledger.sessions WHERE session_id = :session OFFSET 0) s
WHERE tenant_id = :tenant AND deleted_at IS NULL;

-- name: list_sessions
SELECT session_id, tenant_id, user_id, metadata, created_at, deleting_at
FROM ledger.sessions
WHERE tenant_id = :tenant AND deleted_at IS NULL AND (:before::text IS NULL OR session_id COLLATE "C" < :before)
ORDER BY session_id COLLATE "C" DESC LIMIT :limit;

-- name: mark_session_deleting^
-- From here on nothing begins in it. Repeating it changes nothing.
UPDATE ledger.sessions SET deleting_at = coalesce(deleting_at, now())
WHERE session_id = :session AND tenant_id = :tenant
RETURNING session_id, tenant_id, user_id, metadata, created_at, deleting_at, deleted_at IS NOT NULL AS is_deleted;

-- name: sessions_being_deleted
SELECT session_id, tenant_id FROM ledger.sessions
WHERE deleting_at IS NOT NULL AND deleted_at IS NULL AND session_id > :after
ORDER BY session_id LIMIT :limit;

-- name: runs_to_cancel
-- What is still to be cancelled of a session.
SELECT run_id FROM ledger.runs
WHERE session_id = :session AND finished_at IS NULL AND cancel_requested_at IS NULL
ORDER BY run_id COLLATE "C" LIMIT :limit;

-- name: lock_removable_runs
-- Runs of a session being deleted that have ended and whose events all stand on the bus. Whoever writes about a run
-- holds its row, so that what is written before is seen by the statements after this one.
SELECT r.run_id FROM ledger.runs r
WHERE r.session_id = :session AND r.finished_at IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM ledger.events e WHERE e.run_id COLLATE "C" = r.run_id AND e.published_at IS NULL OFFSET 0)
ORDER BY r.run_id COLLATE "C" LIMIT :limit
FOR UPDATE SKIP LOCKED;

-- name: forget_answers!
-- What was answered about these objects is answered no more; the keys stay used.
UPDATE ledger.idempotency SET object_id = '', status = :status, headers = :headers, body = :body
WHERE object_id = ANY(:objects::text[]);

-- name: remove_runs!
-- Runs with their steps, outputs, late results, events and security events; their session counts what went. Readers
-- that wait for one of them are woken.
WITH security AS (
    DELETE FROM ledger.security_events WHERE run_id = ANY(:runs::text[]) RETURNING 1
), events AS (
    DELETE FROM ledger.events WHERE run_id = ANY(:runs::text[]) RETURNING 1
), runs AS (
    DELETE FROM ledger.runs WHERE run_id = ANY(:runs::text[]) RETURNING run_id
), counted AS (
    SELECT (SELECT count(*) FROM runs) AS runs, (SELECT count(*) FROM events) AS events,
           (SELECT count(*) FROM security) AS security_events
), told AS (
    UPDATE ledger.sessions s SET removed = jsonb_build_object(
        'runs', coalesce((s.removed ->> 'runs')::bigint, 0) + counted.runs,
        'events', coalesce((s.removed ->> 'events')::bigint, 0) + counted.events,
        'security_events', coalesce((s.removed ->> 'security_events')::bigint, 0) + counted.security_events)
    FROM counted WHERE s.session_id = :session
)
SELECT pg_notify('ledger_events', run_id || ' finished') FROM runs;

-- name: has_runs$
SELECT EXISTS (SELECT 1 FROM ledger.runs WHERE session_id = :session);

-- name: close_session^
-- The session is deleted once no run of it is left; the relay is woken to tell it.
WITH closed AS (
    UPDATE ledger.sessions s SET deleted_at = now(), metadata = '{}'
    WHERE s.session_id = :session AND s.deleting_at IS NOT NULL AND s.deleted_at IS NULL
      AND NOT EXISTS (SELECT 1 FROM ledger.runs r WHERE r.session_id = s.session_id)
    RETURNING s.session_id
)
SELECT session_id, pg_notify('ledger_events', session_id) FROM closed;

-- name: is_session_deleted$
SELECT deleted_at IS NOT NULL FROM ledger.sessions WHERE session_id = :session;

-- name: create_run^
-- Run, steps and the event run.queued in one statement. A run id that exists already changes nothing. The session's
-- row is shared, so that a deletion comes before or after, and in one that is being deleted nothing begins.
WITH session AS (
    SELECT session_id FROM ledger.sessions
    WHERE session_id = :session AND tenant_id = :tenant AND deleting_at IS NULL FOR SHARE
), run AS (
    INSERT INTO ledger.runs (run_id, tenant_id, user_id, session_id, plan, timeout_s, metadata, traceparent, next_seq)
    SELECT :run, :tenant, :user, :session, :plan, :timeout_s, :metadata, :traceparent, 2
    WHERE :session::text IS NULL OR EXISTS (SELECT 1 FROM session)
    ON CONFLICT (run_id) DO NOTHING
    RETURNING run_id, created_at
), steps AS (
    INSERT INTO ledger.steps (step_id, run_id, index, kind, command, timeout_s)
    SELECT planned.step_id, run.run_id, planned.place - 1, 'bash', planned.command, planned.timeout_s
    FROM run, unnest(:step_ids::text[], :commands::text[], :timeouts::double precision[])
        WITH ORDINALITY AS planned (step_id, command, timeout_s, place)
), event AS (
    INSERT INTO ledger.events (run_id, seq, type, data)
    SELECT run_id, 1, 'run.queued', jsonb_build_object('steps', cardinality(:step_ids::text[])) FROM run
)
SELECT (SELECT created_at FROM run) AS created_at,
       :session::text IS NULL OR EXISTS (SELECT 1 FROM session) AS is_open;

-- name: get_run^
-- A run with all of its steps.
SELECT r.run_id, r.session_id, r.tenant_id, r.user_id, r.status, r.created_at, r.started_at, r.finished_at,
       r.attempt, r.version, r.error, r.metadata,
       (SELECT jsonb_agg(jsonb_build_object(
            'step_id', s.step_id, 'index', s.index, 'kind', s.kind, 'status', s.status, 'outcome', s.outcome,
            'stdout', s.stdout, 'stderr', s.stderr, 'started_at', s.started_at, 'finished_at', s.finished_at,
            'duration_ms', s.duration_ms) ORDER BY s.index)
        FROM ledger.steps s WHERE s.run_id = r.run_id) AS steps
FROM ledger.runs r WHERE r.run_id = :run AND r.tenant_id = :tenant;

-- name: list_runs
-- Runs with their steps, without output.
SELECT r.run_id, r.session_id, r.tenant_id, r.user_id, r.status, r.created_at, r.started_at, r.finished_at,
       r.attempt, r.version, r.error, r.metadata,
       (SELECT jsonb_agg(jsonb_build_object(
            'step_id', s.step_id, 'index', s.index, 'kind', s.kind, 'status', s.status, 'outcome', s.outcome,
            'started_at', s.started_at, 'finished_at', s.finished_at, 'duration_ms', s.duration_ms)
            ORDER BY s.index)
        FROM ledger.steps s WHERE s.run_id = r.run_id) AS steps
FROM (
    (SELECT * FROM ledger.runs
     WHERE :session::text IS NULL AND :status::text IS NULL
       AND tenant_id = :tenant AND (:before::text IS NULL OR run_id COLLATE "C" < :before)
     ORDER BY run_id COLLATE "C" DESC LIMIT :limit)
    UNION ALL
    (SELECT * FROM ledger.runs
     WHERE :session::text IS NULL AND tenant_id COLLATE "C" = :tenant AND status = :status
       AND (:before::text IS NULL OR run_id COLLATE "C" < :before)
     ORDER BY run_id COLLATE "C" DESC LIMIT :limit)
    UNION ALL
    (SELECT * FROM (
         SELECT * FROM ledger.runs WHERE session_id = :session ORDER BY run_id COLLATE "C" DESC OFFSET 0) of_session
     WHERE tenant_id = :tenant AND (:status::text IS NULL OR status = :status)
       AND (:before::text IS NULL OR run_id COLLATE "C" < :before)
     ORDER BY run_id COLLATE "C" DESC LIMIT :limit)
) r
ORDER BY r.run_id COLLATE "C" DESC LIMIT :limit;

-- name: get_events
-- No row at all says that there is no such run; one row without a number that it has no event after that.
SELECT e.seq, e.type, e.data, e.step_id, e.occurred_at
FROM ledger.runs r LEFT JOIN ledger.events e ON e.run_id = r.run_id AND e.seq > :after
WHERE r.run_id = :run ORDER BY e.seq LIMIT :limit;

-- name: request_cancel^
-- A queued run ends here; a running one is marked, and its worker told. Repeating it changes nothing.
WITH before AS (
    SELECT run_id, status FROM ledger.runs WHERE run_id = :run AND tenant_id = :tenant FOR UPDATE
), marked AS (
    UPDATE ledger.runs r
    SET cancel_requested_at = coalesce(cancel_requested_at, now()),
        cancel_reason = coalesce(cancel_reason, :reason),
        version = version + CASE WHEN cancel_requested_at IS NULL THEN 1 ELSE 0 END,
        status = CASE WHEN r.status IN ('queued', 'waiting') THEN 'cancelled' ELSE r.status END,
        finished_at = CASE WHEN r.status IN ('queued', 'waiting') THEN now() ELSE finished_at END,
        error = CASE WHEN r.status IN ('queued', 'waiting')
            THEN jsonb_build_object('code', 'cancelled', 'detail', :reason::text) ELSE error END,
        next_seq = next_seq + CASE WHEN r.status IN ('queued', 'waiting') THEN 1 ELSE 0 END
    FROM before WHERE r.run_id = before.run_id AND before.status IN ('queued', 'waiting', 'running')
    RETURNING r.run_id, r.status, r.next_seq, r.error
), steps AS (
    UPDATE ledger.steps s
    SET status = 'cancelled', outcome = jsonb_build_object('kind', 'cancelled', 'reason', :reason::text)
    FROM marked WHERE s.run_id = marked.run_id AND marked.status = 'cancelled' AND s.status = 'pending'
), event AS (
    INSERT INTO ledger.events (run_id, seq, type, data)
    SELECT run_id, next_seq - 1, 'run.finished', jsonb_build_object('status', status, 'error', error)
    FROM marked WHERE status = 'cancelled'
)
SELECT before.status AS before, coalesce(marked.status, before.status) AS after
FROM before LEFT JOIN marked USING (run_id);

-- name: lock_fairest_tenant^
-- Among tenants with queued runs and free concurrency: fewest live leases, then the oldest run. Holds the tenant's
-- row, so that the count in the next statement is taken by one claim at a time. With newcomers, only tenants
-- without a live lease qualify.
WITH RECURSIVE waiting AS (
    (SELECT tenant_id FROM ledger.runs WHERE status = 'queued' ORDER BY tenant_id COLLATE "C" LIMIT 1)
    UNION ALL
    SELECT (SELECT r.tenant_id FROM ledger.runs r
            WHERE r.status = 'queued' AND r.tenant_id COLLATE "C" > w.tenant_id
            ORDER BY r.tenant_id COLLATE "C" LIMIT 1)
    FROM waiting w WHERE w.tenant_id IS NOT NULL
)
SELECT t.tenant_id
FROM waiting w
JOIN ledger.tenants t ON t.tenant_id = w.tenant_id
CROSS JOIN LATERAL (
    SELECT count(*) AS leases FROM ledger.runs r
    WHERE r.tenant_id = t.tenant_id AND r.status = 'running' COLLATE "C" AND r.lease_expires_at > now()
) live
CROSS JOIN LATERAL (
    SELECT r.run_id FROM ledger.runs r
    WHERE r.tenant_id COLLATE "C" = t.tenant_id AND r.status = 'queued' ORDER BY r.run_id COLLATE "C" LIMIT 1
) oldest
WHERE live.leases < t.max_concurrency AND (NOT :newcomers::boolean OR live.leases = 0)
ORDER BY live.leases, oldest.run_id
LIMIT 1
FOR NO KEY UPDATE OF t;

-- name: grant_run^
-- The tenant's oldest queued run becomes this worker's, if its concurrency (for newcomers: having none) still allows.
WITH picked AS (
    SELECT r.run_id FROM ledger.runs r
    WHERE r.tenant_id COLLATE "C" = :tenant AND r.status = 'queued'
      AND (SELECT count(*) FROM ledger.runs l
           WHERE l.tenant_id = :tenant AND l.status = 'running' COLLATE "C" AND l.lease_expires_at > now())
        < (SELECT CASE WHEN :newcomers::boolean THEN 1 ELSE max_concurrency END
           FROM ledger.tenants WHERE tenant_id = :tenant)
    ORDER BY r.run_id COLLATE "C" LIMIT 1
    FOR UPDATE SKIP LOCKED
), granted AS (
    UPDATE ledger.runs r
    SET status = 'running', fence = fence + 1, version = version + 1, request_id = :request_id,
        lease_owner = :worker, lease_expires_at = now() + make_interval(secs => :lease_s),
        started_at = coalesce(started_at, now()),
        deadline_at = coalesce(deadline_at, now() + make_interval(secs => timeout_s)),
        next_seq = next_seq + 1
    FROM picked WHERE r.run_id = picked.run_id
    RETURNING r.*
), event AS (
    INSERT INTO ledger.events (run_id, seq, type, data)
    SELECT run_id, next_seq - 1, 'run.started', jsonb_build_object('attempt', attempt, 'worker', lease_owner)
    FROM granted
)
SELECT g.run_id, g.tenant_id, g.user_id, g.session_id, g.fence, g.attempt, g.request_id, g.plan, g.traceparent,
       extract(epoch FROM g.deadline_at - now())::double precision AS remaining_s, t.uid,
       (SELECT coalesce(jsonb_agg(jsonb_build_object(
            'step_id', s.step_id, 'index', s.index, 'command', s.command, 'timeout_s', s.timeout_s)
            ORDER BY s.index), '[]')
        FROM ledger.steps s WHERE s.run_id = g.run_id AND s.status = 'pending') AS steps,
       (SELECT count(*) FROM ledger.steps s WHERE s.run_id = g.run_id AND s.status <> 'pending') AS recorded,
       (SELECT coalesce(jsonb_object_agg(c.upstream, c.sealed), '{}')
        FROM ledger.credentials c WHERE c.tenant_id = g.tenant_id) AS credentials,
       (SELECT q.run_id FROM ledger.runs q WHERE q.status = 'queued' AND q.run_id <> g.run_id
        ORDER BY q.tenant_id COLLATE "C", q.run_id COLLATE "C" LIMIT 1) IS NOT NULL AS more_queued
FROM granted g JOIN ledger.tenants t ON t.tenant_id = g.tenant_id;

-- name: renew_leases
-- The leases that still hold, renewed, with what the proxy must know again; the others are lost.
WITH renewed AS (
    UPDATE ledger.runs r
    SET lease_expires_at = now() + make_interval(secs => :lease_s)
    FROM unnest(:runs::text[], :fences::bigint[]) AS held (run_id, fence)
    WHERE r.run_id = held.run_id AND r.fence = held.fence AND r.lease_owner = :worker
      AND r.status = 'running' AND r.lease_expires_at > now()
    RETURNING r.run_id, r.tenant_id, r.user_id, r.session_id, r.fence, r.request_id, r.plan,
              r.traceparent, r.cancel_requested_at IS NOT NULL AS cancelling
)
SELECT renewed.*,
       (SELECT coalesce(jsonb_object_agg(c.upstream, c.sealed), '{}')
        FROM ledger.credentials c WHERE c.tenant_id = renewed.tenant_id) AS credentials
FROM renewed;

-- name: live_leases_of_tenant
SELECT r.run_id, r.tenant_id, r.user_id, r.session_id, r.fence, r.request_id, r.plan, r.traceparent,
       (SELECT coalesce(jsonb_object_agg(c.upstream, c.sealed), '{}')
        FROM ledger.credentials c WHERE c.tenant_id = r.tenant_id) AS credentials
FROM ledger.runs r
WHERE r.tenant_id = :tenant AND r.status = 'running' COLLATE "C" AND r.lease_expires_at > now();

-- name: start_step^
WITH held AS (
    UPDATE ledger.runs r SET next_seq = next_seq + 1, version = version + 1
    WHERE r.run_id = :run AND r.fence = :fence AND r.lease_owner = :worker
      AND r.status = 'running' AND r.lease_expires_at > now()
      AND EXISTS (SELECT 1 FROM ledger.steps s
                  WHERE s.step_id = :step AND s.run_id = r.run_id AND s.status = 'pending')
    RETURNING r.run_id, r.next_seq, r.cancel_requested_at
), step AS (
    UPDATE ledger.steps s SET status = 'running', fence = :fence, started_at = now()
    FROM held WHERE s.step_id = :step
    RETURNING s.index
), event AS (
    INSERT INTO ledger.events (run_id, seq, type, step_id, data)
    SELECT held.run_id, held.next_seq - 1, 'step.started', :step,
           jsonb_build_object('step_id', :step::text, 'index', step.index)
    FROM held, step
)
SELECT cancel_requested_at IS NOT NULL AS cancelling FROM held;

-- name: finish_step^
-- A result with its events, and what follows it (another step starts, or the run ends), in one statement.
WITH held AS (
    UPDATE ledger.runs r
    SET version = version + 1,
        next_seq = next_seq + cardinality(:types::text[]) + CASE WHEN :finish_run THEN 1 ELSE 0 END,
        status = CASE WHEN NOT :finish_run THEN r.status
            WHEN r.cancel_requested_at IS NOT NULL THEN 'cancelled'
            WHEN :error::jsonb IS NOT NULL OR EXISTS (
                SELECT 1 FROM ledger.steps s
                WHERE s.run_id = r.run_id AND s.step_id <> :step AND s.status <> 'succeeded')
            THEN 'failed' ELSE 'succeeded' END,
        error = CASE WHEN NOT :finish_run THEN r.error
            WHEN r.cancel_requested_at IS NOT NULL
            THEN jsonb_build_object('code', 'cancelled', 'detail', r.cancel_reason)
            WHEN :error::jsonb IS NOT NULL AND r.deadline_at <= now()
            THEN jsonb_build_object('code', 'run_timeout', 'detail', format('the run exceeded %s s', r.timeout_s))
            WHEN :error::jsonb IS NOT NULL THEN :error
            ELSE (SELECT jsonb_build_object('code', 'step_failed', 'detail',
                         format('step %s did not succeed', s.index), 'step_id', s.step_id)
                  FROM ledger.steps s
                  WHERE s.run_id = r.run_id AND s.step_id <> :step AND s.status <> 'succeeded'
                  ORDER BY s.index LIMIT 1) END,
        lease_owner = CASE WHEN :finish_run THEN NULL ELSE r.lease_owner END,
        lease_expires_at = CASE WHEN :finish_run THEN NULL ELSE r.lease_expires_at END,
        finished_at = CASE WHEN :finish_run THEN now() ELSE NULL END
    WHERE r.run_id = :run AND r.fence = :fence AND r.lease_owner = :worker
      AND r.status = 'running' AND r.lease_expires_at > now()
      AND EXISTS (SELECT 1 FROM ledger.steps s
                  WHERE s.step_id = :step AND s.run_id = r.run_id AND s.status = 'running' AND s.fence = :fence)
    RETURNING r.run_id, r.tenant_id, r.user_id, r.session_id, r.request_id, r.status, r.error, r.next_seq,
              r.cancel_requested_at
), step AS (
    UPDATE ledger.steps s
    SET status = :status, outcome = :outcome, stdout = :stdout, stderr = :stderr, duration_ms = :duration_ms,
        finished_at = now()
    FROM held WHERE s.step_id = :step
), next_step AS (
    UPDATE ledger.steps s SET status = 'running', fence = :fence, started_at = now()
    FROM held WHERE s.step_id = :start_next AND s.run_id = held.run_id AND s.status = 'pending'
), unreached AS (
    UPDATE ledger.steps s
    SET status = 'cancelled', outcome = jsonb_build_object('kind', 'cancelled', 'reason', 'the run ended before it')
    FROM held WHERE :finish_run AND s.run_id = held.run_id AND s.status = 'pending'
), events AS (
    INSERT INTO ledger.events (run_id, seq, type, step_id, data)
    SELECT held.run_id,
           held.next_seq - CASE WHEN :finish_run THEN 1 ELSE 0 END - cardinality(:types::text[]) + told.place - 1,
           told.type, told.step_id, told.data || CASE WHEN told.type LIKE 'step.%'
               THEN jsonb_build_object('index', (SELECT s.index FROM ledger.steps s WHERE s.step_id = told.step_id))
               ELSE '{}' END
    FROM held, unnest(:types::text[], :step_ids::text[], :datas::jsonb[])
        WITH ORDINALITY AS told (type, step_id, data, place)
    UNION ALL
    SELECT run_id, next_seq - 1, 'run.finished', NULL, jsonb_build_object('status', status, 'error', error)
    FROM held WHERE :finish_run
), security AS (
    INSERT INTO ledger.security_events
        (event_id, tenant_id, user_id, session_id, run_id, step_id, kind, guard, reason, snippet, detail)
    SELECT report.event_id, held.tenant_id, held.user_id, held.session_id, held.run_id, report.step_id,
           report.kind, report.guard, report.reason, report.snippet, report.detail
    FROM held, jsonb_to_recordset(:security::jsonb) AS report
        (event_id text, step_id text, kind text, guard text, reason text, snippet text, detail jsonb)
    ON CONFLICT (event_id) DO NOTHING
)
SELECT cancel_requested_at IS NOT NULL AS cancelling, request_id FROM held;

-- name: finish_run^
-- The worker has nothing left to run; whatever is pending ends with the run.
WITH held AS (
    UPDATE ledger.runs r
    SET version = version + 1, next_seq = next_seq + 1, lease_owner = NULL, lease_expires_at = NULL,
        finished_at = now(),
        status = CASE WHEN r.cancel_requested_at IS NOT NULL THEN 'cancelled'
            WHEN r.deadline_at <= now() OR EXISTS (
                SELECT 1 FROM ledger.steps s WHERE s.run_id = r.run_id AND s.status <> 'succeeded')
            THEN 'failed' ELSE 'succeeded' END,
        error = CASE WHEN r.cancel_requested_at IS NOT NULL
            THEN jsonb_build_object('code', 'cancelled', 'detail', r.cancel_reason)
            WHEN r.deadline_at <= now()
            THEN jsonb_build_object('code', 'run_timeout', 'detail', format('the run exceeded %s s', r.timeout_s))
            ELSE (SELECT jsonb_build_object('code', 'step_failed', 'detail',
                         format('step %s did not succeed', s.index), 'step_id', s.step_id)
                  FROM ledger.steps s WHERE s.run_id = r.run_id AND s.status <> 'succeeded'
                  ORDER BY s.index LIMIT 1) END
    WHERE r.run_id = :run AND r.fence = :fence AND r.lease_owner = :worker
      AND r.status = 'running' AND r.lease_expires_at > now()
    RETURNING r.run_id, r.request_id, r.status, r.error, r.next_seq, r.cancel_reason
), ended AS (
    UPDATE ledger.steps s
    SET status = CASE WHEN s.status = 'running' THEN 'unknown' ELSE 'cancelled' END, fence = 0,
        outcome = CASE WHEN s.status = 'running'
            THEN jsonb_build_object('kind', 'lost', 'reason', 'the run ended without its result')
            ELSE jsonb_build_object('kind', 'cancelled', 'reason', 'the run ended before it') END
    FROM held WHERE s.run_id = held.run_id AND s.status IN ('pending', 'running')
), event AS (
    INSERT INTO ledger.events (run_id, seq, type, data)
    SELECT run_id, next_seq - 1, 'run.finished', jsonb_build_object('status', status, 'error', error) FROM held
)
SELECT request_id FROM held;

-- name: describe_holding^
-- Why a worker's write matched nothing: the run, and the fence and status of the step.
SELECT r.status, r.fence, r.request_id, r.cancel_requested_at IS NOT NULL AS cancelling,
       (r.lease_owner = :worker AND r.lease_expires_at > now()) IS TRUE AS is_held,
       s.status AS step_status, s.fence AS step_fence
FROM ledger.runs r LEFT JOIN ledger.steps s ON s.run_id = r.run_id AND s.step_id = :step
WHERE r.run_id = :run;

-- name: keep_late_result!
INSERT INTO ledger.late_results (run_id, step_id, fence, outcome)
SELECT s.run_id, s.step_id, :fence, :outcome FROM ledger.steps s WHERE s.run_id = :run AND s.step_id = :step
ON CONFLICT DO NOTHING;

-- name: lock_held_run^
-- For release: the run, if this worker still holds it.
SELECT run_id FROM ledger.runs
WHERE run_id = :run AND fence = :fence AND lease_owner = :worker AND status = 'running' AND lease_expires_at > now()
FOR UPDATE;

-- name: lock_expired_runs
-- Runs whose worker is gone, whose time is over (also while they wait for another worker), or whose cancel was not
-- confirmed in time.
SELECT run_id FROM ledger.runs
WHERE (status = 'running' COLLATE "C"
       AND (lease_expires_at <= now()
            OR deadline_at <= now() - make_interval(secs => :grace_s)
            OR cancel_requested_at <= now() - make_interval(secs => :grace_s)))
   OR (status = 'queued' AND deadline_at <= now())
ORDER BY lease_expires_at LIMIT :limit
FOR UPDATE SKIP LOCKED;

-- name: lock_unconfirmed_cancel^
SELECT run_id FROM ledger.runs
WHERE run_id = :run AND status = 'running' AND cancel_requested_at IS NOT NULL FOR UPDATE;

-- name: interrupted_run^
-- The facts that decide what becomes of a run whose worker is gone. The row is locked already.
SELECT r.run_id, r.tenant_id, r.user_id, r.session_id, r.attempt, t.max_attempts, r.request_id, r.timeout_s,
       r.cancel_requested_at IS NOT NULL AS cancelling, r.cancel_reason,
       r.deadline_at <= now() AS overdue, r.lease_owner, r.plan ->> 'on_lost' AS on_lost,
       EXISTS (SELECT 1 FROM ledger.steps s
               WHERE s.run_id = r.run_id AND s.status = 'running') AS step_running,
       EXISTS (SELECT 1 FROM ledger.steps s
               WHERE s.run_id = r.run_id AND s.status IN ('succeeded', 'failed')) AS has_results
FROM ledger.runs r JOIN ledger.tenants t USING (tenant_id) WHERE r.run_id = :run;

-- name: requeue_run!
WITH requeued AS (
    UPDATE ledger.runs r
    SET status = 'queued', attempt = attempt + :attempts, version = version + 1, next_seq = next_seq + 1,
        lease_owner = NULL, lease_expires_at = NULL
    WHERE r.run_id = :run
    RETURNING r.run_id, r.attempt, r.next_seq
), steps AS (
    UPDATE ledger.steps s SET status = 'pending', started_at = NULL, fence = 0
    FROM requeued WHERE s.run_id = requeued.run_id AND s.status = 'running'
)
INSERT INTO ledger.events (run_id, seq, type, data)
SELECT run_id, next_seq - 1, 'run.requeued', jsonb_build_object(
    'attempt', attempt, 'reason', :reason::text, 'workspace_lost', :workspace_lost::boolean)
FROM requeued;

-- name: end_run!
-- A run ends without its worker: the running step's outcome is as given, the pending ones are cancelled. Fence 0
-- on a step says that no worker reported its end.
WITH ended AS (
    UPDATE ledger.runs r
    SET status = :status, error = :error, version = version + 1, next_seq = next_seq + 1,
        lease_owner = NULL, lease_expires_at = NULL, finished_at = now()
    WHERE r.run_id = :run
    RETURNING r.run_id, r.status, r.error, r.next_seq
), steps AS (
    UPDATE ledger.steps s
    SET status = CASE WHEN s.status = 'running' THEN :step_status ELSE 'cancelled' END, fence = 0,
        outcome = CASE WHEN s.status = 'running' THEN :step_outcome
            ELSE jsonb_build_object('kind', 'cancelled', 'reason', 'the run ended before it') END,
        finished_at = CASE WHEN s.status = 'running' THEN now() ELSE s.finished_at END
    FROM ended WHERE s.run_id = ended.run_id AND s.status IN ('pending', 'running')
)
INSERT INTO ledger.events (run_id, seq, type, data)
SELECT run_id, next_seq - 1, 'run.finished', jsonb_build_object('status', status, 'error', error) FROM ended;

-- name: record_security^
-- One report of the proxy, once: in the audit table, and as an event of the run while it is not finished.
WITH about AS (
    SELECT run_id, tenant_id, user_id, session_id FROM ledger.runs WHERE run_id = :run FOR NO KEY UPDATE
), recorded AS (
    INSERT INTO ledger.security_events
        (event_id, tenant_id, user_id, session_id, run_id, step_id, kind, guard, reason, snippet, detail)
    SELECT :event_id, tenant_id, user_id, session_id, run_id,
           (SELECT s.step_id FROM ledger.steps s
            WHERE s.run_id = about.run_id AND s.status = 'running' ORDER BY s.index LIMIT 1),
           :kind, :guard, :reason, :snippet, :detail
    FROM about
    ON CONFLICT (event_id) DO NOTHING
    RETURNING run_id, step_id
), counted AS (
    UPDATE ledger.runs r SET next_seq = next_seq + 1
    FROM recorded WHERE r.run_id = recorded.run_id AND r.finished_at IS NULL
    RETURNING r.run_id, r.next_seq, recorded.step_id
), event AS (
    INSERT INTO ledger.events (run_id, seq, type, step_id, data)
    SELECT run_id, next_seq - 1, 'security.' || :kind, step_id, :data FROM counted
)
SELECT run_id FROM recorded;

-- name: list_security_events
-- Newest first, in the order of their recording: reports of workers and of the proxy have ids of different kinds.
SELECT event_id, place, tenant_id, user_id, session_id, run_id, step_id, kind, guard, reason, snippet, detail,
       occurred_at
FROM (
    (SELECT * FROM ledger.security_events
     WHERE :run::text IS NULL AND :tenant::text IS NULL
       AND (:since::timestamptz IS NULL OR occurred_at >= :since) AND (:before::bigint IS NULL OR place < :before)
     ORDER BY place DESC LIMIT :limit)
    UNION ALL
    (SELECT * FROM ledger.security_events
     WHERE :run::text IS NULL AND tenant_id = :tenant
       AND (:since::timestamptz IS NULL OR occurred_at >= :since) AND (:before::bigint IS NULL OR -place > -(:before::bigint))
     ORDER BY -place LIMIT :limit)
    UNION ALL
    (SELECT * FROM (SELECT * FROM ledger.security_events WHERE run_id = :run OFFSET 0) of_run
     WHERE (:tenant::text IS NULL OR tenant_id = :tenant)
       AND (:since::timestamptz IS NULL OR occurred_at >= :since) AND (:before::bigint IS NULL OR place < :before)
     ORDER BY place DESC LIMIT :limit)
) told
ORDER BY place DESC LIMIT :limit;

-- name: lock_unsent_heads
-- The first unsent event of each run that no other relay holds: whoever holds it may send all of that run.
SELECT e.run_id FROM ledger.events e
WHERE e.published_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM ledger.events p
    WHERE p.run_id COLLATE "C" = e.run_id AND p.seq < e.seq AND p.published_at IS NULL OFFSET 0)
ORDER BY e.occurred_at LIMIT :limit
FOR UPDATE OF e SKIP LOCKED;

-- name: unsent_events
SELECT e.run_id, e.seq, e.type, e.step_id, e.data, e.occurred_at, r.tenant_id, r.user_id, r.session_id,
       r.traceparent
FROM unnest(:runs::text[]) AS asked (run_id)
JOIN ledger.runs r ON r.run_id = asked.run_id
CROSS JOIN LATERAL (
    SELECT * FROM ledger.events u WHERE u.run_id COLLATE "C" = asked.run_id AND u.published_at IS NULL OFFSET 0
) e
ORDER BY e.run_id, e.seq;

-- name: lock_untold_deletions
-- Deleted sessions that no other relay is telling.
SELECT session_id, tenant_id, user_id, deleted_at, removed FROM ledger.sessions
WHERE deleted_at IS NOT NULL AND published_at IS NULL
ORDER BY deleted_at LIMIT :limit
FOR UPDATE SKIP LOCKED;

-- name: mark_told!
UPDATE ledger.sessions SET published_at = now() WHERE session_id = ANY(:sessions::text[]);

-- name: mark_sent!
UPDATE ledger.events e SET published_at = now()
FROM unnest(:runs::text[], :seqs::integer[]) AS sent (run_id, seq)
WHERE e.run_id = sent.run_id AND e.seq = sent.seq;

-- name: outbox_age^
-- How many events are unsent, and for how long the oldest has been.
SELECT count(*) AS unsent, coalesce(extract(epoch FROM now() - min(since)), 0)::double precision AS oldest_s
FROM (SELECT occurred_at AS since FROM ledger.events WHERE published_at IS NULL
      UNION ALL
      SELECT deleted_at FROM ledger.sessions WHERE deleted_at IS NOT NULL AND published_at IS NULL) unsent;

-- name: reserve_idempotency^
-- The first request with a key, or one whose predecessor died, gets the row; any other reads it below.
INSERT INTO ledger.idempotency AS i (scope, key, fingerprint, object_id, locked_until, expires_at)
VALUES (:scope, :key, :fingerprint, :object_id, now() + make_interval(secs => :lock_s),
        now() + make_interval(secs => :ttl_s))
ON CONFLICT (scope, key) DO UPDATE
SET fingerprint = excluded.fingerprint, locked_until = excluded.locked_until, expires_at = excluded.expires_at,
    object_id = CASE WHEN i.expires_at <= now() THEN excluded.object_id ELSE i.object_id END,
    status = NULL, headers = NULL, body = NULL
WHERE i.expires_at <= now()
   OR (i.status IS NULL AND i.locked_until <= now() AND i.fingerprint = excluded.fingerprint)
RETURNING object_id;

-- name: read_idempotency^
SELECT fingerprint, object_id, status, headers, body FROM ledger.idempotency WHERE scope = :scope AND key = :key;

-- name: store_idempotency!
-- An answer about what was deleted meanwhile is not remembered.
UPDATE ledger.idempotency SET status = :status, headers = :headers, body = :body
WHERE scope = :scope AND key = :key AND status IS NULL;

-- name: forget_idempotency_key!
DELETE FROM ledger.idempotency WHERE scope = :scope AND key = :key AND status IS NULL;

-- name: unlock_idempotency!
UPDATE ledger.idempotency SET locked_until = now() WHERE scope = :scope AND key = :key AND status IS NULL;

-- name: forget_expired_idempotency!
DELETE FROM ledger.idempotency WHERE ctid IN (
    SELECT ctid FROM ledger.idempotency WHERE expires_at <= now() ORDER BY expires_at LIMIT 1000);

-- name: answers$
SELECT 1;
