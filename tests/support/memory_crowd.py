"""A store where tenants hold very different numbers of rows, and arguments about some of them.

What the planner believes of a tenant on average is true of none of them.
"""

from collections.abc import Mapping

from caisson.common.postgres import Pool

_MEMORIES = """
INSERT INTO memory.memories (
    tenant_id, memory_id, external_id, user_id, owner_scope, scopes, scope_key, layer, status, text, content_hash,
    context_key, subject, attribute, fact_key, outcome, importance, confidence, trust, valid_from, valid_to,
    expires_at, provenance_kind, run_id, session_id, superseded_by, version, chunks, indexed_version, embedder,
    used_at, created_at, updated_at)
SELECT tenant, 'mem_' || md5(tenant || n), CASE WHEN n % 5 = 0 THEN 'doc-' || n END, 'u-' || n % 20, scopes[1],
       scopes, sha256(scopes::text::bytea), layer, status, 'said in case ' || n,
       sha256(('said in case ' || n)::bytea), 'c', 'case ' || n, 'state', sha256(('case ' || n)::bytea), 'ok',
       0.5, 1, 1, long_ago, CASE WHEN status = 'superseded' THEN now() - interval '9 days' END,
       CASE n % 11 WHEN 0 THEN now() + interval '90 days' WHEN 1 THEN now() - interval '1 hour' END,
       CASE WHEN n % 13 = 0 THEN 'consolidation' ELSE 'run' END, 'run_1', 's-' || n % 50,
       CASE WHEN status = 'superseded' THEN 'mem_' || md5(tenant || n + 1) END, 2, 1, 1, 'digest',
       long_ago, long_ago, long_ago
FROM ({held}) AS t (tenant, memories), generate_series(1, memories) AS n, LATERAL (
    SELECT CASE n % 3 WHEN 0 THEN ARRAY['user:u-' || n % 20] WHEN 1 THEN ARRAY['tenant']
           ELSE ARRAY['team:a', 'user:u-' || n % 20] END AS scopes,
           (ARRAY['semantic', 'episodic', 'procedural', 'session', 'episodic'])[n % 7 % 5 + 1] AS layer,
           CASE n % 10 WHEN 9 THEN 'superseded' WHEN 8 THEN 'cold' ELSE 'active' END AS status,
           now() - interval '60 days' - interval '1 minute' * n AS long_ago) AS made
"""
_BESIDE = """
INSERT INTO memory.lexemes
SELECT tenant_id, memory_id, array_to_tsvector(ARRAY['said', 'case', split_part(text, ' ', 4)]) FROM memory.memories;

INSERT INTO memory.history
SELECT tenant_id, memory_id, v, 'remembered', text, content_hash, valid_from, valid_to
FROM memory.memories, generate_series(1, 2) AS v;

INSERT INTO memory.sources
SELECT m.tenant_id, m.memory_id, s.memory_id FROM memory.memories m
JOIN memory.memories s ON s.tenant_id = m.tenant_id AND s.memory_id = m.superseded_by;

INSERT INTO memory.tombstones
SELECT tenant_id, owner_scope, sha256(memory_id::bytea), now(), sha256(memory_id::bytea) FROM memory.memories;

INSERT INTO memory.index_outbox (tenant_id, memory_id)
SELECT tenant_id, memory_id FROM memory.memories WHERE right(text, 1) = '7'
UNION ALL
SELECT tenant_id, 'gone_' || memory_id FROM memory.memories WHERE right(text, 2) = '00';

INSERT INTO memory.events (event_id, tenant_id, user_id, type, data)
SELECT 'evt_' || tenant_id || memory_id, tenant_id, user_id, 'memory.recalled', '{}' FROM memory.memories;

INSERT INTO memory.retrievals (retrieval_id, tenant_id, user_id, session_id, kind, injected, counted, created_at)
SELECT 'ret_' || tenant_id || memory_id, tenant_id, user_id, session_id, 'search', ARRAY[memory_id],
       right(text, 2) <> '00', created_at + interval '59 days'
FROM memory.memories;

INSERT INTO memory.scope_epochs SELECT DISTINCT tenant_id, unnest(scopes) FROM memory.memories;

INSERT INTO memory.usage
SELECT tenant_id, coalesce(user_id, ''), count(*), sum(bytes) FROM memory.memories
GROUP BY GROUPING SETS ((tenant_id, user_id), (tenant_id));

INSERT INTO memory.jobs (job_id, tenant_id, user_id, kind, done)
SELECT 'job_' || tenant_id || memory_id, tenant_id, user_id,
       CASE right(text, 2) WHEN '13' THEN 'distil' ELSE 'delete' END, right(text, 2) <> '13'
FROM memory.memories WHERE right(text, 1) = '3';

INSERT INTO memory.distil_texts (job_id, position, text, content_hash)
SELECT job_id, p, 'text ' || job_id, sha256(job_id::bytea) FROM memory.jobs, generate_series(1, 4) AS p
WHERE kind = 'distil';

INSERT INTO memory.ended_sessions SELECT DISTINCT tenant_id, 'ended ' || session_id FROM memory.memories;

INSERT INTO memory.embedding (name, dimensions, digest, enqueued) VALUES ('words', 8, 'digest', true);
"""


def arguments(tenant: str) -> dict[str, str]:
    """Return SQL for every parameter of the statements, about memories of a tenant that are there."""
    memory = f"'mem_' || md5('{tenant}' || {{}})"
    ids = f"ARRAY[{', '.join(memory.format(n) for n in range(1, 11))}]"
    about = {
        "tenant": f"'{tenant}'",
        "tenants": f"array_fill('{tenant}'::text, ARRAY[10])",
        "ids": ids,
        "injected": ids,
        "going": ids,
        "memory": memory.format(10),
        "successor": memory.format(20),
        "twin": memory.format(4),
        "job": f"'job_{tenant}' || {memory.format(13)}",
        "retrieval": f"'ret_{tenant}' || {memory.format(3)}",
    }
    return _ARGUMENTS | {name: f"array_fill({value}, ARRAY[10])" for name, value in _TENFOLD.items()} | about


_TENFOLD = {
    "versions": "2",
    "generations": "1",
    "chunks": "1",
    "leases": "0",
    "delays_s": "1",
    "points": "1",
    "qs": "0.5",
}
_ARGUMENTS = {
    **dict.fromkeys(("now", "as_of", "at", "valid_from"), "now()"),
    **dict.fromkeys(("since", "before"), "now() - interval '30 days'"),
    "horizon": "now() + interval '5 minutes'",
    **dict.fromkeys(("before_at", "before_id", "status", "valid_to", "expires_at", "after"), "NULL"),
    **dict.fromkeys(("after_tenant", "after_owner", "after_scope_key", "after_id", "set_hash"), "''"),
    **dict.fromkeys(("layers", "tags", "metadata", "state", "receipt", "data", "measured"), "'{}'"),
    **dict.fromkeys(("importance", "confidence", "trust", "reward", "confirmations"), "1"),
    **dict.fromkeys(("twin_version", "least", "target_rate", "dense", "lexical"), "1"),
    **dict.fromkeys(("wake", "wipe", "done", "from_scratch", "endless", "kept_for_good"), "true"),
    **dict.fromkeys(("user", "name", "outcome", "run", "error", "event"), "'u-3'"),
    **dict.fromkeys(("owner", "own"), "'user:u-3'"),
    **dict.fromkeys(("texts", "sessions", "runs", "users"), "ARRAY['a']"),
    **dict.fromkeys(("lease_s", "lasting_s", "again_in_s", "days", "receipt_days", "unfinished_days"), "60"),
    **dict.fromkeys(("positions", "weights", "topics"), "ARRAY[1]"),
    **dict.fromkeys(("hashes", "vectors"), "ARRAY[''::bytea]"),
    **dict.fromkeys(("digest", "embedder"), "'digest'"),
    **dict.fromkeys(("words", "terms"), "ARRAY['said', 'case']"),
    **dict.fromkeys(("id", "external_id", "source"), "'doc-15'"),
    "after_at": "'-infinity'",
    "allowed": "ARRAY['tenant', 'user:u-3']",
    "attribute": "'state'",
    "change": "'corrected'",
    "bare_hash": "sha256('bare')",
    "chars": "1000",
    "is_long": "NULL",
    "memories": "10",
    "most_bytes": "100000",
    "content_hash": "sha256('said in case 15')",
    "context_key": "'c'",
    "datas": "ARRAY['{}'::jsonb]",
    "dimensions": "8",
    "fact_key": "sha256('case 15')",
    "fence": "0",
    "hopeless": "5",
    "kind": "'distil'",
    "layer": "'semantic'",
    "limit": "10",
    "content_hashes": "ARRAY[sha256('new')]",
    "bare_hashes": "ARRAY[sha256('new')]",
    "owners": "ARRAY['user:u-3']",
    "provenance_kind": "'run'",
    "scope_key": "sha256('{user:u-3}')",
    "scopes": "ARRAY['user:u-3']",
    "session": "'s-7'",
    "subject": "'case'",
    "text": "'another'",
    "types": "ARRAY['memory.recalled']",
    "work": "'sweep'",
}


async def gather(pool: Pool, tenants: Mapping[str, int], *, also: tuple[int, int]) -> None:
    """Fill an empty store: memories by tenant, and so many more tenants with so many memories each."""
    named = ", ".join(f"('{tenant}', {memories})" for tenant, memories in tenants.items())
    many, few = also
    held = f"VALUES {named} UNION ALL SELECT 'many-' || t, {few} FROM generate_series(1, {many}) t"
    await pool.execute("ALTER TABLE memory.memories DISABLE TRIGGER USER")
    for sql in (_MEMORIES.format(held=held), _BESIDE):
        await pool.execute(sql, timeout=60)
    await pool.execute("ALTER TABLE memory.memories ENABLE TRIGGER USER")
    await pool.execute("VACUUM ANALYZE", timeout=60)
