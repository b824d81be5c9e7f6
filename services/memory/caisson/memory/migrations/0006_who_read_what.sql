-- What a memory's reader is told beside its text: earlier versions, and ids of other memories. None of it is another's.

-- Whom earlier versions were told to, where the memory has had other scopes since; null where they are its scopes now.
ALTER TABLE memory.history ADD COLUMN scopes text[];

-- Of the memories that one was made from, those that its reader may see.
CREATE FUNCTION memory.sources_of(tenant text, made text, allowed text[], moment timestamptz) RETURNS text[]
LANGUAGE sql STABLE AS $$
    SELECT ARRAY(SELECT s.source_id FROM memory.sources s JOIN memory.memories m
                     ON m.tenant_id = s.tenant_id AND m.memory_id = s.source_id
                 WHERE s.tenant_id = tenant AND s.memory_id = made
                   AND m.scopes && allowed AND (m.expires_at IS NULL OR m.expires_at > moment)
                 ORDER BY 1)
$$;

-- The id of a successor, if its reader may see that.
CREATE FUNCTION memory.successor_of(tenant text, successor text, allowed text[], moment timestamptz) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT (SELECT m.memory_id FROM memory.memories m
            WHERE m.tenant_id = tenant AND m.memory_id = successor
              AND m.scopes && allowed AND (m.expires_at IS NULL OR m.expires_at > moment))
$$;
