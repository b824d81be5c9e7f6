-- What is remembered, where it came from, what was forgotten, and everything derived from it that must follow.

CREATE TABLE memory.memories (
    tenant_id       text NOT NULL,
    memory_id       text NOT NULL,
    external_id     text,
    user_id         text NOT NULL,                  -- who is charged for it
    owner_scope     text NOT NULL,                  -- whose it is: the user's own scope where that is among the scopes
    scopes          text[] NOT NULL,                -- sorted, without repeats
    scope_key       bytea NOT NULL,                 -- hash of the scopes
    layer           text NOT NULL CHECK (layer IN ('session', 'episodic', 'semantic', 'procedural')),
    status          text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'cold', 'superseded')),
    text            text NOT NULL CHECK (octet_length(text) BETWEEN 1 AND 262144),
    content_hash    bytea NOT NULL CHECK (octet_length(content_hash) = 32),
    context_key     bytea NOT NULL,                 -- hash of what else tells two memories of one text apart
    subject         text,
    attribute       text,
    fact_key        bytea,                          -- hash of subject and attribute: one such fact is current at a time
    outcome         text,
    confirmations   integer NOT NULL DEFAULT 0 CHECK (confirmations >= 0),
    importance      double precision NOT NULL CHECK (importance BETWEEN 0 AND 1),
    confidence      double precision NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    trust           double precision NOT NULL CHECK (trust BETWEEN 0 AND 1),
    q               double precision NOT NULL DEFAULT 0 CHECK (q BETWEEN -1 AND 1),
    visits          integer NOT NULL DEFAULT 0 CHECK (visits >= 0),
    valid_from      timestamptz NOT NULL,
    valid_to        timestamptz,
    expires_at      timestamptz,
    tags            text[] NOT NULL DEFAULT '{}',
    metadata        jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(metadata) = 'object'),
    provenance_kind text NOT NULL
                    CHECK (provenance_kind IN ('person', 'run', 'tool', 'consolidation', 'distillation', 'import')),
    run_id          text,
    session_id      text,
    source          text,
    superseded_by   text,                           -- its successor may have been forgotten since
    version         integer NOT NULL DEFAULT 1 CHECK (version >= 1),
    chunks          integer NOT NULL DEFAULT 0 CHECK (chunks >= 0),       -- points that the index holds of it
    indexed_version integer,                        -- the version that those points show
    embedder        text,                           -- digest of the embedder that made them
    used_at         timestamptz NOT NULL DEFAULT now(),
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now(),
    bytes           bigint GENERATED ALWAYS AS (
        octet_length(text) + octet_length(metadata::text) + coalesce(octet_length(outcome), 0)
        + coalesce(octet_length(subject), 0) + coalesce(octet_length(attribute), 0)) STORED,
    PRIMARY KEY (tenant_id, memory_id),
    CONSTRAINT is_somebodys CHECK (
        cardinality(scopes) > 0 AND array_position(scopes, NULL) IS NULL AND array_position(scopes, '') IS NULL
        AND owner_scope = ANY (scopes)),
    CONSTRAINT validity_goes_forward CHECK (valid_to IS NULL OR valid_to >= valid_from),
    CONSTRAINT superseded_has_ended CHECK (status <> 'superseded' OR valid_to IS NOT NULL),
    CONSTRAINT only_superseded_has_a_successor CHECK (superseded_by IS NULL OR status = 'superseded'),
    CONSTRAINT attribute_has_a_subject CHECK (attribute IS NULL OR subject IS NOT NULL),
    CONSTRAINT fact_has_both CHECK (fact_key IS NULL OR attribute IS NOT NULL),
    CONSTRAINT episode_has_a_run_and_an_end CHECK (
        layer <> 'episodic' OR (run_id IS NOT NULL AND outcome IS NOT NULL)),
    CONSTRAINT session_memory_has_a_session CHECK (layer <> 'session' OR session_id IS NOT NULL),
    CONSTRAINT indexed_has_both CHECK ((indexed_version IS NULL) = (embedder IS NULL))
);

-- One row per text, however often and by however many at once it is said.
CREATE UNIQUE INDEX memories_once ON memory.memories (
    tenant_id, owner_scope, scope_key, layer, content_hash, context_key) WHERE status <> 'superseded';
-- One open fact per subject and attribute.
CREATE UNIQUE INDEX memories_one_current_fact ON memory.memories (tenant_id, owner_scope, scope_key, layer, fact_key)
    WHERE status <> 'superseded' AND fact_key IS NOT NULL AND valid_to IS NULL
      AND layer IN ('semantic', 'procedural');
CREATE UNIQUE INDEX memories_by_external_id ON memory.memories (tenant_id, owner_scope, external_id)
    WHERE external_id IS NOT NULL;
CREATE INDEX memories_facts ON memory.memories (tenant_id, fact_key, valid_from) WHERE fact_key IS NOT NULL;
CREATE INDEX memories_newest ON memory.memories (tenant_id, created_at DESC, memory_id DESC);
CREATE INDEX memories_by_owner ON memory.memories (tenant_id, owner_scope, memory_id);
CREATE INDEX memories_by_session ON memory.memories (tenant_id, session_id) WHERE layer = 'session';
CREATE INDEX memories_by_successor ON memory.memories (tenant_id, superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX memories_expiring ON memory.memories (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX memories_unused ON memory.memories (used_at) WHERE status = 'active';
CREATE INDEX memories_by_scope ON memory.memories USING gin (scopes);

-- The one gate of every read, in two steps. `readable` is what a principal may ever see: of its tenant, in an allowed
-- scope (compared whole), not expired. `visible` is what it may be told at a time: in force then, and not cold unless
-- asked. A superseded memory has ended (CHECK above), so it is seen only by an `as_of` before its end.
CREATE FUNCTION memory.readable(tenant text, allowed text[], moment timestamptz) RETURNS SETOF memory.memories
LANGUAGE sql STABLE AS $$
    SELECT m.* FROM memory.memories m
    WHERE m.tenant_id = tenant AND m.scopes && allowed AND (m.expires_at IS NULL OR m.expires_at > moment)
$$;

CREATE FUNCTION memory.visible(
    tenant text, allowed text[], moment timestamptz, as_of timestamptz, layers text[], cold boolean
) RETURNS SETOF memory.memories
LANGUAGE sql STABLE AS $$
    SELECT r.* FROM memory.readable(tenant, allowed, moment) r
    WHERE (cold OR r.status <> 'cold')
      AND r.valid_from <= as_of AND (r.valid_to IS NULL OR r.valid_to > as_of)
      AND (cardinality(layers) = 0 OR r.layer = ANY (layers))
$$;

-- The terms of each text, for recall without the index.
CREATE TABLE memory.lexemes (
    tenant_id text NOT NULL,
    memory_id text NOT NULL,
    lexemes   tsvector NOT NULL,
    PRIMARY KEY (tenant_id, memory_id),
    FOREIGN KEY (tenant_id, memory_id) REFERENCES memory.memories ON DELETE CASCADE
);
CREATE INDEX lexemes_by_term ON memory.lexemes USING gin (lexemes);

-- What a memory was made from. An edge never crosses tenants.
CREATE TABLE memory.sources (
    tenant_id text NOT NULL,
    memory_id text NOT NULL,
    source_id text NOT NULL CHECK (source_id <> memory_id),
    PRIMARY KEY (tenant_id, memory_id, source_id),
    FOREIGN KEY (tenant_id, memory_id) REFERENCES memory.memories ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, source_id) REFERENCES memory.memories ON DELETE CASCADE
);
CREATE INDEX sources_by_source ON memory.sources (tenant_id, source_id);

-- Every version of every memory. It goes with its memory; a rebuilt summary loses the texts before.
CREATE TABLE memory.history (
    tenant_id    text NOT NULL,
    memory_id    text NOT NULL,
    version      integer NOT NULL CHECK (version >= 1),
    change       text NOT NULL CHECK (change IN
                 ('remembered', 'corrected', 'superseded', 'restated', 'consolidated', 'rebuilt', 'cooled', 'woken')),
    text         text,
    content_hash bytea,
    valid_from   timestamptz NOT NULL,
    valid_to     timestamptz,
    at           timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, memory_id, version),
    FOREIGN KEY (tenant_id, memory_id) REFERENCES memory.memories ON DELETE CASCADE,
    CONSTRAINT text_has_its_hash CHECK ((text IS NULL) = (content_hash IS NULL))
);

-- What was forgotten, so that a later re-ingest does not bring it back.
CREATE TABLE memory.tombstones (
    tenant_id    text NOT NULL,
    owner_scope  text NOT NULL,
    content_hash bytea NOT NULL CHECK (octet_length(content_hash) = 32),
    forgotten_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, owner_scope, content_hash)
);

-- Memories whose points may differ from their rows. What the index must hold is read from the row, or from its absence.
CREATE TABLE memory.index_outbox (
    tenant_id    text NOT NULL,
    memory_id    text NOT NULL,
    generation   bigint NOT NULL DEFAULT 1,
    attempts     integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    enqueued_at  timestamptz NOT NULL DEFAULT now(),
    not_before   timestamptz NOT NULL DEFAULT now(),
    leased_until timestamptz,
    error        text,
    PRIMARY KEY (tenant_id, memory_id)
);
CREATE INDEX index_outbox_due ON memory.index_outbox (not_before, enqueued_at);

-- Facts for the bus: ids and counts, never a text. A row goes once JetStream has acknowledged it.
CREATE TABLE memory.events (
    event_id    text PRIMARY KEY,
    tenant_id   text NOT NULL,
    user_id     text NOT NULL,
    session_id  text,
    run_id      text,
    type        text NOT NULL CHECK (type IN
                ('memory.remembered', 'memory.superseded', 'memory.recalled', 'memory.forgotten')),
    data        jsonb NOT NULL,
    occurred_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX events_unsent ON memory.events (occurred_at, event_id);

-- What a recall put before a model: for feedback, for telling an echo, and for knowing what is used.
CREATE TABLE memory.retrievals (
    retrieval_id text PRIMARY KEY,
    tenant_id    text NOT NULL,
    user_id      text NOT NULL,
    session_id   text,
    kind         text NOT NULL CHECK (kind IN ('search', 'context')),
    injected     text[] NOT NULL,                   -- memory ids, best first
    counted      boolean NOT NULL DEFAULT false,    -- whether its memories are marked as used
    reward       double precision CHECK (reward BETWEEN -1 AND 1),
    rewarded_at  timestamptz,
    created_at   timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT rewarded_has_both CHECK ((reward IS NULL) = (rewarded_at IS NULL))
);
CREATE INDEX retrievals_by_session ON memory.retrievals (tenant_id, user_id, session_id, created_at DESC);
CREATE INDEX retrievals_by_memory ON memory.retrievals USING gin (injected);
CREATE INDEX retrievals_by_age ON memory.retrievals (created_at);

-- A cached recall is good while the epochs of its principal's scopes are those it was made under.
CREATE TABLE memory.scope_epochs (
    tenant_id text NOT NULL,
    scope     text NOT NULL,
    epoch     bigint NOT NULL DEFAULT 1,
    PRIMARY KEY (tenant_id, scope)
);

-- What tenants (user_id '') and users have stored. The tenant's row is the lock of everyone who writes its memories.
CREATE TABLE memory.usage (
    tenant_id text NOT NULL,
    user_id   text NOT NULL,
    rows      bigint NOT NULL DEFAULT 0 CHECK (rows >= 0),      -- superseded ones do not count
    bytes     bigint NOT NULL DEFAULT 0 CHECK (bytes >= 0),     -- everything counts
    PRIMARY KEY (tenant_id, user_id)
);

-- The embedder that the index was made with; another one needs every memory embedded again.
CREATE TABLE memory.embedding (
    only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    name       text NOT NULL,
    dimensions integer NOT NULL CHECK (dimensions > 0),
    digest     text NOT NULL,
    set_at     timestamptz NOT NULL DEFAULT now()
);

-- The gate's thresholds, found on a query set for one embedder.
CREATE TABLE memory.calibrations (
    embedder        text PRIMARY KEY,               -- digest
    set_hash        text NOT NULL,
    target_rate     double precision NOT NULL CHECK (target_rate > 0 AND target_rate <= 1),
    dense_threshold double precision NOT NULL CHECK (dense_threshold BETWEEN -1 AND 1),
    lexical_threshold double precision NOT NULL CHECK (lexical_threshold >= 0),
    measured        jsonb NOT NULL DEFAULT '{}',
    calibrated_at   timestamptz NOT NULL DEFAULT now()
);

-- Long work in slices: leased, fenced, resumable. Receipts hold ids and counts, never a text.
CREATE TABLE memory.jobs (
    job_id       text PRIMARY KEY,
    tenant_id    text NOT NULL,
    user_id      text NOT NULL,
    kind         text NOT NULL CHECK (kind IN ('delete', 'erase_user', 'distil')),
    done         boolean NOT NULL DEFAULT false,
    state        jsonb NOT NULL DEFAULT '{}',
    receipt      jsonb NOT NULL DEFAULT '{}',
    fence        bigint NOT NULL DEFAULT 0,
    leased_until timestamptz,
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT done_is_not_leased CHECK (NOT done OR leased_until IS NULL)
);
CREATE INDEX jobs_by_age ON memory.jobs (updated_at);

-- The texts of an unfinished distillation.
CREATE TABLE memory.distil_texts (
    job_id       text NOT NULL REFERENCES memory.jobs ON DELETE CASCADE,
    position     integer NOT NULL,
    text         text NOT NULL,
    content_hash bytea NOT NULL,
    weight       integer NOT NULL DEFAULT 1 CHECK (weight >= 1),
    vector       bytea,
    topic        integer,
    selected     boolean NOT NULL DEFAULT false,
    PRIMARY KEY (job_id, position)
);

-- A change of what a reader could notice is a new version.
CREATE FUNCTION memory.next_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.version := OLD.version + 1;
    NEW.updated_at := now();
    RETURN NEW;
END $$;

CREATE TRIGGER memories_next_version BEFORE UPDATE ON memory.memories FOR EACH ROW
    WHEN ((OLD.text, OLD.scopes, OLD.layer, OLD.status, OLD.subject, OLD.attribute, OLD.outcome, OLD.importance,
           OLD.confidence, OLD.trust, OLD.valid_from, OLD.valid_to, OLD.expires_at, OLD.tags, OLD.metadata,
           OLD.superseded_by)
          IS DISTINCT FROM
          (NEW.text, NEW.scopes, NEW.layer, NEW.status, NEW.subject, NEW.attribute, NEW.outcome, NEW.importance,
           NEW.confidence, NEW.trust, NEW.valid_from, NEW.valid_to, NEW.expires_at, NEW.tags, NEW.metadata,
           NEW.superseded_by))
    EXECUTE FUNCTION memory.next_version();

-- Whatever changes memories, three things follow in the same transaction: usage, cache epochs, the index outbox.
CREATE TYPE memory.change AS (
    tenant_id text, memory_id text, user_id text, scopes text[], rows bigint, bytes bigint);

CREATE FUNCTION memory.follow(changes memory.change[]) RETURNS void LANGUAGE sql AS $$
    INSERT INTO memory.usage (tenant_id, user_id)
    SELECT DISTINCT c.tenant_id, who FROM unnest(changes) c, LATERAL (VALUES (''), (c.user_id)) AS charged (who)
    ORDER BY 1, 2
    ON CONFLICT DO NOTHING;

    UPDATE memory.usage u SET rows = u.rows + d.rows, bytes = u.bytes + d.bytes
    FROM (SELECT c.tenant_id, who, sum(c.rows) AS rows, sum(c.bytes) AS bytes
          FROM unnest(changes) c, LATERAL (VALUES (''), (c.user_id)) AS charged (who) GROUP BY 1, 2) d
    WHERE u.tenant_id = d.tenant_id AND u.user_id = d.who AND (d.rows <> 0 OR d.bytes <> 0);

    INSERT INTO memory.scope_epochs AS e (tenant_id, scope)
    SELECT DISTINCT c.tenant_id, scope FROM unnest(changes) c, unnest(c.scopes) AS scope
    ORDER BY 1, 2
    ON CONFLICT (tenant_id, scope) DO UPDATE SET epoch = e.epoch + 1;

    INSERT INTO memory.index_outbox AS o (tenant_id, memory_id)
    SELECT DISTINCT c.tenant_id, c.memory_id FROM unnest(changes) c
    ORDER BY 1, 2
    ON CONFLICT (tenant_id, memory_id) DO UPDATE SET generation = o.generation + 1, attempts = 0, not_before = now();
$$;

CREATE FUNCTION memory.after_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changes memory.change[];
BEGIN
    IF TG_OP = 'INSERT' THEN
        SELECT array_agg(ROW (f.tenant_id, f.memory_id, f.user_id, f.scopes,
                              CASE WHEN f.status = 'superseded' THEN 0 ELSE 1 END, f.bytes)::memory.change)
        INTO changes FROM fresh f;
    ELSIF TG_OP = 'DELETE' THEN
        SELECT array_agg(ROW (g.tenant_id, g.memory_id, g.user_id, g.scopes,
                              CASE WHEN g.status = 'superseded' THEN 0 ELSE -1 END, -g.bytes)::memory.change)
        INTO changes FROM gone g;
    ELSE
        SELECT array_agg(ROW (f.tenant_id, f.memory_id, f.user_id, g.scopes || f.scopes,
                              CASE WHEN f.status = 'superseded' THEN 0 ELSE 1 END
                              - CASE WHEN g.status = 'superseded' THEN 0 ELSE 1 END,
                              f.bytes - g.bytes)::memory.change)
        INTO changes FROM fresh f JOIN gone g USING (tenant_id, memory_id) WHERE f.version <> g.version;
    END IF;
    IF changes IS NOT NULL THEN
        PERFORM memory.follow(changes);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER memories_inserted AFTER INSERT ON memory.memories
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION memory.after_change();
CREATE TRIGGER memories_updated AFTER UPDATE ON memory.memories
    REFERENCING OLD TABLE AS gone NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION memory.after_change();
CREATE TRIGGER memories_deleted AFTER DELETE ON memory.memories
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION memory.after_change();
