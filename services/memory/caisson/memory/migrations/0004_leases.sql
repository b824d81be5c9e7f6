-- Periodic work that one replica at a time does for all: leased, fenced, resumable. `state` holds ids and counts.
CREATE TABLE memory.leases (
    work          text PRIMARY KEY CHECK (work IN ('sweep', 'reconcile', 'consolidate')),
    fence         bigint NOT NULL DEFAULT 0,
    leased_until  timestamptz,
    due_at        timestamptz NOT NULL DEFAULT now(),
    progressed_at timestamptz NOT NULL DEFAULT now(),   -- when a step was last saved
    state         jsonb NOT NULL DEFAULT '{}'
);
INSERT INTO memory.leases (work) VALUES ('sweep'), ('reconcile'), ('consolidate');

-- Where there are episodes to consolidate.
CREATE INDEX memories_active_episodes ON memory.memories (tenant_id, owner_scope, scope_key)
    WHERE layer = 'episodic' AND status = 'active';
