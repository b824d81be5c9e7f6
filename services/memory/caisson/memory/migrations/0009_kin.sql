-- What stands beside a memory's text, as a table of one row: unlike a function of one value, the planner can look into it.

-- Of the memories that one was made from, those that its reader may see; and its successor, if the reader may see that.
CREATE FUNCTION memory.kin_of(tenant text, made text, following text, allowed text[], moment timestamptz)
RETURNS TABLE (sources text[], successor text)
LANGUAGE sql STABLE AS $$
    SELECT ARRAY(SELECT s.source_id FROM memory.sources s JOIN memory.memories m
                     ON m.tenant_id = s.tenant_id AND m.memory_id = s.source_id
                 WHERE s.tenant_id = tenant AND s.memory_id = made
                   AND m.scopes && allowed AND (m.expires_at IS NULL OR m.expires_at > moment)
                 ORDER BY 1),
           (SELECT m.memory_id FROM memory.memories m
            WHERE m.tenant_id = tenant AND m.memory_id = following
              AND m.scopes && allowed AND (m.expires_at IS NULL OR m.expires_at > moment))
$$;

DROP FUNCTION memory.sources_of(text, text, text[], timestamptz);
DROP FUNCTION memory.successor_of(text, text, text[], timestamptz);

-- It holds the same scopes of all tenants, so that reading by it grows with everybody else's memories.
DROP INDEX memory.memories_by_scope;
