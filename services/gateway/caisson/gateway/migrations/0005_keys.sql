-- What is asked about one run, session, tenant or status reads that, whatever else runs or has run, and whatever the planner
-- saw when it last looked. An index that says COLLATE "C", or negates, offers itself only to statements that say so too.

-- Who works on a run finds it by its id, and never among all that are running or queued.
DROP INDEX ledger.runs_running;
CREATE INDEX runs_running ON ledger.runs (tenant_id, lease_expires_at) WHERE status = 'running' COLLATE "C";
DROP INDEX ledger.runs_queued;
CREATE INDEX runs_queued ON ledger.runs (tenant_id COLLATE "C", run_id COLLATE "C") WHERE status = 'queued';

-- The newest of a tenant are never looked for among the newest of all.
DROP INDEX ledger.runs_by_tenant;
CREATE INDEX runs_by_tenant ON ledger.runs (tenant_id, run_id COLLATE "C" DESC);
CREATE INDEX runs_by_status ON ledger.runs (tenant_id COLLATE "C", status, run_id COLLATE "C" DESC);
DROP INDEX ledger.runs_by_session;
CREATE INDEX runs_by_session ON ledger.runs (session_id, run_id COLLATE "C" DESC) WHERE session_id IS NOT NULL;
DROP INDEX ledger.security_events_by_tenant;
CREATE INDEX security_events_by_tenant ON ledger.security_events (tenant_id, (-place));
CREATE INDEX api_keys_by_tenant ON ledger.api_keys (tenant_id, key_id COLLATE "C" DESC) WHERE tenant_id IS NOT NULL;

-- Nor among sessions that were deleted, of which a row stays for ever.
DROP INDEX ledger.sessions_by_tenant;
CREATE INDEX sessions_by_tenant ON ledger.sessions (tenant_id, session_id COLLATE "C" DESC) WHERE deleted_at IS NULL;

-- What is unsent of a run, without all that was sent of it before.
CREATE INDEX events_unsent_of_run ON ledger.events (run_id COLLATE "C", seq) WHERE published_at IS NULL;
