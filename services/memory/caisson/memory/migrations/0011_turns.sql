-- Indexing goes by tenants in turn, of each the oldest first; long texts, of which each takes seconds, apart from brief ones.
ALTER TABLE memory.index_outbox
    ADD COLUMN bytes bigint NOT NULL DEFAULT 0,
    ADD COLUMN is_long boolean NOT NULL GENERATED ALWAYS AS (bytes > 65536) STORED;
UPDATE memory.index_outbox o SET bytes = m.bytes
FROM memory.memories m WHERE m.tenant_id = o.tenant_id AND m.memory_id = o.memory_id;

CREATE FUNCTION memory.weigh() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.bytes := coalesce((SELECT m.bytes FROM memory.memories m
                           WHERE m.tenant_id = NEW.tenant_id AND m.memory_id = NEW.memory_id), 0);
    RETURN NEW;
END $$;

CREATE TRIGGER index_outbox_weighed BEFORE INSERT OR UPDATE OF generation ON memory.index_outbox
    FOR EACH ROW EXECUTE FUNCTION memory.weigh();

CREATE INDEX index_outbox_turns ON memory.index_outbox (tenant_id, is_long, anew, enqueued_at);
DROP INDEX memory.index_outbox_in_turn;
DROP INDEX memory.index_outbox_due;
