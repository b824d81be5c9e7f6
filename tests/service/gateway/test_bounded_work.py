"""What a statement of the ledger touches is bounded, however many runs have finished and whoever else has some."""

from collections.abc import AsyncIterator

import pytest

from caisson.common.postgres import Connection, connect_pool, load_queries, migrate
from caisson.gateway.app import MIGRATIONS_DIR, QUERIES_FILE, SCHEMA
from tests.support.gateway import create_database
from tests.support.ledger_crowd import arguments, fill
from tests.support.touched_pages import touched

QUERIES = load_queries(QUERIES_FILE)
NAMES = {name for name in QUERIES.available_queries if not name.endswith("_cursor")}

LARGE, SMALL = "large", "small"
HELD = {LARGE: 8_000, SMALL: 100}
OTHERS = (1_500, 4)

BOUNDED = [
    (
        30,
        LARGE,
        "one row by its key, with what little belongs to it",
        "answers authenticate create_key revoke_key lock_uids create_tenant get_tenant change_tenant put_credential "
        "delete_credential create_session get_session mark_session_deleting has_runs close_session "
        "is_session_deleted create_run get_run get_events describe_holding keep_late_result lock_held_run "
        "lock_unconfirmed_cancel interrupted_run mark_told reserve_idempotency read_idempotency store_idempotency "
        "forget_idempotency_key unlock_idempotency",
    ),
    (
        60,
        LARGE,
        "a run or a step changes, with its events and all indexes",
        "request_cancel start_step finish_step finish_run requeue_run end_run record_security",
    ),
    (120, LARGE, "the next run is chosen and granted, beside its tenant's others", "lock_fairest_tenant grant_run"),
    (
        100,
        LARGE,
        "a page, however much lies before, behind and between",
        "list_keys list_sessions list_runs of_session failed security_of_run list_security_events runs_to_cancel "
        "sessions_being_deleted lock_untold_deletions live_leases_of_tenant lock_expired_runs",
    ),
    (
        180,
        LARGE,
        "ten runs by their ids",
        "renew_leases lock_removable_runs remove_runs forget_answers unsent_events mark_sent lock_unsent_heads",
    ),
]
UNBOUNDED = {
    "forget_expired_idempotency": "up to a thousand keys go at once",
    "outbox_age": "the backlog is counted",
}
VARIANTS = {"of_session": "list_runs", "failed": "list_runs", "security_of_run": "list_security_events"}
VALUES = {
    "create_key": {"key_id": "'new'"},
    "create_run": {"run": "'new'", "session": "NULL"},
    "create_session": {"session": "'new'"},
    "create_tenant": {"tenant": "'new'"},
    "end_run": {"status": "'failed'"},
    "failed": {"session": "NULL", "status": "'failed'"},
    "finish_step": {"status": "'succeeded'", "error": "NULL", "step_ids": "ARRAY['step_0run_large000001']"},
    "forget_answers": {"status": "200"},
    "get_events": {"after": "0"},
    "list_runs": {"session": "NULL"},
    "list_security_events": {"run": "NULL"},
    "start_step": {"step": "'step_1run_large000001'"},
    "store_idempotency": {"status": "200"},
}


@pytest.fixture(scope="module", params=[False, True], ids=["analysed as it is", "analysed while all was queued"])
async def connection(postgres_url: str, request: pytest.FixtureRequest) -> AsyncIterator[Connection]:
    pool = await connect_pool(await create_database(postgres_url), application="tests", max_size=2)
    await migrate(pool, MIGRATIONS_DIR, schema=SCHEMA)
    await fill(pool, HELD, also=OTHERS, in_a_rush=request.param)
    async with pool.acquire() as connection:
        yield connection
    await pool.close()


@pytest.mark.parametrize(("pages", "tenant", "reason", "names"), BOUNDED, ids=[row[2] for row in BOUNDED])
async def test_a_statement_touches_no_more_than_it_is_asked_for(
    connection: Connection, pages: int, tenant: str, reason: str, names: str
) -> None:
    about = arguments(tenant)
    statements = {name: (VARIANTS.get(name, name), about | VALUES.get(name, {})) for name in names.split()}
    found = await touched(connection, QUERIES, statements)
    assert {key: count for key, count in found.items() if count > pages} == {}, reason


def test_every_statement_is_bounded_or_says_why_not() -> None:
    bounded = {name for row in BOUNDED for name in row[3].split()} - set(VARIANTS)
    assert (bounded | set(UNBOUNDED), bounded & set(UNBOUNDED)) == (NAMES, set())
