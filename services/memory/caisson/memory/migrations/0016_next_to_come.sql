-- When the next of a tenant's memories that a reader may see comes into force, if that is before the horizon. Of more than a
-- hundred that come before it no more are read: then the time of the last of these, too early for a reader and never too late.
CREATE FUNCTION memory.next_to_come(tenant text, allowed text[], moment timestamptz, horizon timestamptz)
RETURNS TABLE (until timestamptz)
LANGUAGE sql STABLE AS $$
    SELECT coalesce(
        min(coming.valid_from) FILTER (
            WHERE coming.scopes && allowed AND (coming.expires_at IS NULL OR coming.expires_at > moment)),
        CASE WHEN count(*) = 100 THEN max(coming.valid_from) END)
    FROM (
        SELECT m.valid_from, m.scopes, m.expires_at FROM memory.memories m
        WHERE m.tenant_id COLLATE "C" = tenant
          AND m.valid_from AT TIME ZONE 'UTC' > moment AT TIME ZONE 'UTC'
          AND m.valid_from AT TIME ZONE 'UTC' <= horizon AT TIME ZONE 'UTC'
        ORDER BY m.valid_from AT TIME ZONE 'UTC' LIMIT 100
    ) coming
$$;
