-- How far the index is from whole while every memory is embedded again.
ALTER TABLE memory.embedding
    ADD COLUMN enqueued boolean NOT NULL DEFAULT false,     -- whether all that is to be embedded waits in the outbox
    ADD COLUMN from_scratch boolean NOT NULL DEFAULT false, -- whether that is everything, and not what others embedded
    ADD COLUMN whole_at timestamptz;                        -- null until nothing of it is left
UPDATE memory.embedding SET enqueued = true, whole_at = set_at;

-- Embedding everything again gives way to what is new.
ALTER TABLE memory.index_outbox ADD COLUMN anew boolean NOT NULL DEFAULT false;
CREATE INDEX index_outbox_in_turn ON memory.index_outbox (anew, enqueued_at);
CREATE INDEX index_outbox_anew ON memory.index_outbox (tenant_id, memory_id) WHERE anew;
