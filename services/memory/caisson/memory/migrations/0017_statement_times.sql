-- A memory is dated by the statement that writes it: those of one transaction keep their order, and writers that waited for
-- their tenant's lock are dated in the order in which they had it.
ALTER TABLE memory.memories
    ALTER COLUMN created_at SET DEFAULT statement_timestamp(),
    ALTER COLUMN updated_at SET DEFAULT statement_timestamp();

CREATE OR REPLACE FUNCTION memory.next_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.version := OLD.version + 1;
    NEW.updated_at := statement_timestamp();
    RETURN NEW;
END $$;
