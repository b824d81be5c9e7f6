-- Deleting a session: marked at once, worked off in pages. What stays of it is this row, so that its id is never used
-- again and that it happened can be told; the row is also the outbox of the fact session.deleted.

ALTER TABLE ledger.sessions
    ADD COLUMN deleting_at  timestamptz,
    ADD COLUMN deleted_at   timestamptz,
    ADD COLUMN published_at timestamptz,
    ADD COLUMN removed      jsonb NOT NULL DEFAULT '{}',    -- how many rows went, by what they were
    ADD CONSTRAINT deleted_after_deleting CHECK (deleted_at IS NULL OR deleting_at IS NOT NULL),
    ADD CONSTRAINT published_once_deleted CHECK (published_at IS NULL OR deleted_at IS NOT NULL),
    ADD CONSTRAINT deleted_says_nothing CHECK (deleted_at IS NULL OR metadata = '{}');

CREATE INDEX sessions_deleting ON ledger.sessions (session_id) WHERE deleting_at IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX sessions_unpublished ON ledger.sessions (deleted_at)
    WHERE deleted_at IS NOT NULL AND published_at IS NULL;

CREATE INDEX idempotency_by_object ON ledger.idempotency (object_id);
CREATE INDEX security_events_by_run ON ledger.security_events (run_id);
