-- The ledger: tenants, sessions, runs, steps, events, and who may call.

CREATE TABLE ledger.tenants (
    tenant_id       text PRIMARY KEY,
    uid             integer NOT NULL UNIQUE CHECK (uid BETWEEN 10000 AND 60000),
    max_concurrency integer NOT NULL DEFAULT 32 CHECK (max_concurrency BETWEEN 1 AND 10000),
    max_attempts    integer NOT NULL DEFAULT 3 CHECK (max_attempts BETWEEN 1 AND 100),
    retention_days  integer NOT NULL DEFAULT 30 CHECK (retention_days BETWEEN 1 AND 3650),
    limits          jsonb NOT NULL DEFAULT '{}',
    ceilings        jsonb NOT NULL DEFAULT '{}',
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE ledger.api_keys (
    key_id      text PRIMARY KEY,
    kind        text NOT NULL CHECK (kind IN ('platform', 'tenant')),
    name        text NOT NULL,
    tenant_id   text,
    secret_hash bytea NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    revoked_at  timestamptz,
    CHECK ((kind = 'tenant') = (tenant_id IS NOT NULL))
);

CREATE TABLE ledger.credentials (
    tenant_id  text NOT NULL REFERENCES ledger.tenants,
    upstream   text NOT NULL,
    sealed     text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, upstream)
);

CREATE TABLE ledger.sessions (
    session_id text PRIMARY KEY,
    tenant_id  text NOT NULL REFERENCES ledger.tenants,
    user_id    text NOT NULL,
    metadata   jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX sessions_by_tenant ON ledger.sessions (tenant_id, session_id DESC);

CREATE TABLE ledger.runs (
    run_id              text PRIMARY KEY,
    tenant_id           text NOT NULL REFERENCES ledger.tenants,
    user_id             text NOT NULL,
    session_id          text REFERENCES ledger.sessions,
    status              text NOT NULL DEFAULT 'queued'
                        CHECK (status IN ('queued', 'running', 'waiting', 'succeeded', 'failed', 'cancelled')),
    version             integer NOT NULL DEFAULT 1,
    attempt             integer NOT NULL DEFAULT 1,
    fence               bigint NOT NULL DEFAULT 0,
    request_id          text,
    lease_owner         text,
    lease_expires_at    timestamptz,
    cancel_requested_at timestamptz,
    cancel_reason       text,
    plan                jsonb NOT NULL,
    timeout_s           double precision NOT NULL CHECK (timeout_s > 0),
    metadata            jsonb NOT NULL DEFAULT '{}',
    error               jsonb,
    next_seq            integer NOT NULL DEFAULT 1,
    created_at          timestamptz NOT NULL DEFAULT now(),
    started_at          timestamptz,
    deadline_at         timestamptz,
    finished_at         timestamptz,
    CONSTRAINT running_is_leased CHECK (
        (status = 'running' AND lease_owner IS NOT NULL AND lease_expires_at IS NOT NULL
            AND request_id IS NOT NULL AND deadline_at IS NOT NULL AND started_at IS NOT NULL AND fence > 0)
        OR (status <> 'running' AND lease_owner IS NULL AND lease_expires_at IS NULL)
    ),
    CONSTRAINT finished_has_a_time CHECK (
        (status IN ('succeeded', 'failed', 'cancelled')) = (finished_at IS NOT NULL)
    ),
    CONSTRAINT failed_has_an_error CHECK (status <> 'failed' OR error IS NOT NULL)
);
CREATE INDEX runs_queued ON ledger.runs (tenant_id, run_id) WHERE status = 'queued';
CREATE INDEX runs_running ON ledger.runs (tenant_id, lease_expires_at) WHERE status = 'running';
CREATE INDEX runs_queued_again ON ledger.runs (deadline_at) WHERE status = 'queued' AND deadline_at IS NOT NULL;
CREATE INDEX runs_by_tenant ON ledger.runs (tenant_id, run_id DESC);
CREATE INDEX runs_by_session ON ledger.runs (session_id, run_id DESC) WHERE session_id IS NOT NULL;

CREATE TABLE ledger.steps (
    step_id     text PRIMARY KEY,
    run_id      text NOT NULL REFERENCES ledger.runs ON DELETE CASCADE,
    index       integer NOT NULL,
    kind        text NOT NULL CHECK (kind IN ('bash')),
    command     text NOT NULL,
    timeout_s   double precision NOT NULL CHECK (timeout_s > 0),
    status      text NOT NULL DEFAULT 'pending'
                CHECK (status IN ('pending', 'running', 'succeeded', 'failed', 'cancelled', 'unknown')),
    fence       bigint NOT NULL DEFAULT 0,
    outcome     jsonb,
    stdout      jsonb,
    stderr      jsonb,
    duration_ms double precision,
    started_at  timestamptz,
    finished_at timestamptz,
    UNIQUE (run_id, index),
    CONSTRAINT finished_has_an_outcome CHECK ((status IN ('pending', 'running')) = (outcome IS NULL))
);

-- A result that came after its run had ended otherwise: kept, and changes nothing.
CREATE TABLE ledger.late_results (
    run_id      text NOT NULL REFERENCES ledger.runs ON DELETE CASCADE,
    step_id     text NOT NULL,
    fence       bigint NOT NULL,
    outcome     jsonb NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (run_id, step_id, fence)
);

-- The event is the outbox row: published_at is null until JetStream has acknowledged it.
CREATE TABLE ledger.events (
    run_id       text NOT NULL REFERENCES ledger.runs ON DELETE CASCADE,
    seq          integer NOT NULL,
    type         text NOT NULL,
    step_id      text,
    data         jsonb NOT NULL,
    occurred_at  timestamptz NOT NULL DEFAULT now(),
    published_at timestamptz,
    PRIMARY KEY (run_id, seq)
);
CREATE INDEX events_unsent ON ledger.events (occurred_at, run_id, seq) WHERE published_at IS NULL;

CREATE TABLE ledger.security_events (
    event_id    text PRIMARY KEY,
    place       bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    tenant_id   text NOT NULL,
    user_id     text NOT NULL,
    session_id  text,
    run_id      text NOT NULL,
    step_id     text,
    kind        text NOT NULL,
    guard       text,
    reason      text NOT NULL,
    snippet     text,
    detail      jsonb NOT NULL DEFAULT '{}',
    occurred_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX security_events_by_tenant ON ledger.security_events (tenant_id, place DESC);

CREATE TABLE ledger.idempotency (
    scope        text NOT NULL,
    key          text NOT NULL,
    fingerprint  bytea NOT NULL,
    object_id    text NOT NULL,
    locked_until timestamptz NOT NULL,
    status       integer,
    headers      jsonb,
    body         bytea,
    expires_at   timestamptz NOT NULL,
    PRIMARY KEY (scope, key),
    CHECK ((status IS NULL) = (body IS NULL))
);
CREATE INDEX idempotency_expiring ON ledger.idempotency (expires_at);

-- Wakes relays, readers and claims: the run's id, and what else is new: it finished, or it can be claimed.
CREATE FUNCTION ledger.tell_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('ledger_events', run_id || CASE
        WHEN bool_or(type = 'run.finished') THEN ' finished'
        WHEN bool_or(type IN ('run.queued', 'run.requeued')) THEN ' queued'
        ELSE '' END)
    FROM fresh GROUP BY run_id;
    RETURN NULL;
END $$;

CREATE TRIGGER events_tell AFTER INSERT ON ledger.events
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION ledger.tell_events();
