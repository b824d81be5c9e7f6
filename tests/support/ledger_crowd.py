"""A ledger with many finished runs of many tenants and little that is under way, and arguments about some of it."""

from collections.abc import Mapping

from caisson.common.postgres import Pool

_RUNS = """
INSERT INTO ledger.tenants (tenant_id, uid)
SELECT tenant, 10000 + row_number() OVER () FROM ({held}) AS t (tenant, runs);

INSERT INTO ledger.sessions (session_id, tenant_id, user_id, deleting_at, deleted_at, published_at)
SELECT 'ses_' || tenant || lpad(n::text, 6, '0'), tenant, 'u',
       gone, gone, gone
FROM ({held}) AS t (tenant, runs), generate_series(1, runs / 10 + 1) AS n,
     LATERAL (SELECT CASE WHEN n % 4 <> 3 THEN now() END AS gone) AS made;

INSERT INTO ledger.runs (run_id, tenant_id, user_id, session_id, plan, timeout_s, next_seq)
SELECT 'run_' || tenant || lpad(n::text, 6, '0'), tenant, 'u',
       'ses_' || tenant || lpad((n % (runs / 10 + 1) + 1)::text, 6, '0'), '{{}}', 60, 4
FROM ({held}) AS t (tenant, runs), generate_series(1, runs) AS n;

INSERT INTO ledger.steps (step_id, run_id, index, kind, command, timeout_s)
SELECT 'step_' || i || run_id, run_id, i, 'bash', 'true', 60 FROM ledger.runs, generate_series(0, 1) AS i;

INSERT INTO ledger.events (run_id, seq, type, data)
SELECT run_id, seq, 'run.queued', '{{}}' FROM ledger.runs, generate_series(1, 3) AS seq;

INSERT INTO ledger.events (run_id, seq, type, data)
SELECT 'run_large000005', seq, 'security.guard', '{{}}' FROM generate_series(4, 6000) AS seq;

INSERT INTO ledger.security_events (event_id, tenant_id, user_id, run_id, kind, reason)
SELECT 'sec_' || run_id, tenant_id, 'u', run_id, 'guard', 'r' FROM ledger.runs;

INSERT INTO ledger.idempotency (scope, key, fingerprint, object_id, locked_until, expires_at)
SELECT tenant_id, run_id, '', run_id, now(), now() + interval '1 day' FROM ledger.runs;

INSERT INTO ledger.api_keys (key_id, kind, name, tenant_id, secret_hash)
SELECT 'key_' || tenant_id, 'tenant', 'k', tenant_id, '' FROM ledger.tenants;
"""
_FINISHED = """
UPDATE ledger.runs SET status = 'succeeded', finished_at = now() WHERE right(run_id, 3) <> '001';
UPDATE ledger.steps SET status = 'succeeded', outcome = '{}' WHERE right(run_id, 3) <> '001';
UPDATE ledger.events SET published_at = now() WHERE right(run_id, 3) <> '001';
UPDATE ledger.events SET published_at = NULL WHERE run_id = 'run_large000005' AND seq = 6000;
UPDATE ledger.idempotency SET expires_at = now() WHERE right(key, 3) = '001';
UPDATE ledger.runs SET status = 'running', lease_owner = 'w', lease_expires_at = now() + interval '1 hour', fence = 1,
    request_id = 'r', deadline_at = now() + interval '1 hour', started_at = now()
WHERE right(run_id, 4) = '0001';
UPDATE ledger.steps SET status = 'running', fence = 1, started_at = now()
WHERE right(run_id, 4) = '0001' AND index = 0;
"""


async def fill(pool: Pool, tenants: Mapping[str, int], *, also: tuple[int, int], in_a_rush: bool) -> None:
    """Fill an empty ledger: runs by tenant, and so many more tenants with so many runs each.

    In a rush, the planner has last looked when all of them were queued.
    """
    named = ", ".join(f"('{tenant}', {runs})" for tenant, runs in tenants.items())
    many, few = also
    held = f"VALUES {named} UNION ALL SELECT 'many-' || t, {few} FROM generate_series(1, {many}) t"
    await pool.execute(_RUNS.format(held=held), timeout=60)
    if in_a_rush:
        await pool.execute("ANALYZE", timeout=60)
    await pool.execute(_FINISHED, timeout=60)
    await pool.execute("VACUUM" if in_a_rush else "VACUUM ANALYZE", timeout=60)


def arguments(tenant: str) -> dict[str, str]:
    """Return SQL for every parameter of the statements, about runs of a tenant that are there."""
    runs = "ARRAY[" + ", ".join(f"'run_{tenant}{n:06}'" for n in range(1, 11)) + "]"
    about = {
        "tenant": f"'{tenant}'",
        "run": f"'run_{tenant}000001'",
        "runs": runs,
        "objects": runs,
        "session": f"'ses_{tenant}000003'",
        "step": f"'step_0run_{tenant}000001'",
        "key_id": f"'key_{tenant}'",
        "scope": f"'{tenant}'",
        "key": f"'run_{tenant}000005'",
    }
    return _ARGUMENTS | about


_ARGUMENTS = {
    **dict.fromkeys(("before", "since", "prefix", "status", "start_next"), "NULL"),
    **dict.fromkeys(("limits", "ceilings", "metadata", "plan", "headers", "outcome", "stdout", "stderr"), "'{}'"),
    **dict.fromkeys(("detail", "data", "step_outcome", "error"), "'{}'"),
    **dict.fromkeys(("max_concurrency", "max_attempts", "retention_days", "fence", "timeout_s", "attempts"), "1"),
    **dict.fromkeys(("lease_s", "grace_s", "lock_s", "ttl_s", "duration_ms"), "60"),
    **dict.fromkeys(("finish_run", "workspace_lost"), "true"),
    **dict.fromkeys(("upstream", "sealed", "name", "user", "reason", "request_id", "event_id", "snippet"), "'x'"),
    **dict.fromkeys(("secret_hash", "body", "fingerprint"), "''"),
    **dict.fromkeys(("step_ids", "commands"), "ARRAY['new']"),
    "after": "''",
    "datas": "ARRAY['{}'::jsonb]",
    "fences": "array_fill(1, ARRAY[10])",
    "guard": "'shell'",
    "kind": "'tenant'",
    "limit": "10",
    "newcomers": "false",
    "object_id": "'new'",
    "security": "'[]'",
    "seqs": "array_fill(1, ARRAY[10])",
    "sessions": "ARRAY['new']",
    "step_status": "'unknown'",
    "timeouts": "ARRAY[1]",
    "traceparent": "NULL",
    "types": "ARRAY['step.finished']",
    "worker": "'w'",
}
