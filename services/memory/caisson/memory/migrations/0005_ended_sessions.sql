-- Sessions that were deleted: what is said of one from then on, however late, is refused.
CREATE TABLE memory.ended_sessions (
    tenant_id  text NOT NULL,
    session_id text NOT NULL,
    ended_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, session_id)
);
CREATE INDEX ended_sessions_by_age ON memory.ended_sessions (ended_at);
