"""What a statement touches is bounded by what is asked for, whatever others hold and the planner believes of them."""

from collections.abc import AsyncIterator

import pytest

from caisson.common.postgres import Connection, connect_pool, load_queries, migrate
from caisson.memory.app import MIGRATIONS_DIR, QUERIES_FILE, SCHEMA
from tests.support.gateway import create_database
from tests.support.memory_crowd import arguments, gather
from tests.support.touched_pages import touched

QUERIES = load_queries(QUERIES_FILE)
NAMES = {name for name in QUERIES.available_queries if not name.endswith("_cursor")}

LARGE, SMALL = "large", "small"
HELD = {LARGE: 12_000, SMALL: 100}
OTHERS = {"beside a few tenants of some size": (20, 600), "beside many small tenants": (4_000, 3)}
"""Who else has memories: so many tenants so many each. With the average differs what the planner does."""

BOUNDED = [
    (
        30,
        LARGE,
        "one row by its key",
        "answers read_memory read_history has_current_fact facts_around standing twin_of same_summary "
        "find_tombstone first_end_of_sources texts_of_terms lift_tombstone has_session_ended "
        "mark_session_ended account lock_tenant next_tenant read_receipt read_job lease_job complete_receipt "
        "create_job save_job note_job has_retrieval reward_retrieval link_source cool_sources "
        "drop_expired_in_the_way forget_user record_events record_recall",
    ),
    (
        80,
        LARGE,
        "one memory is written, with its terms, its version and all of its indexes",
        "insert_memory restate_memory correct_memory confirm_memory close_memory rebuild_summary",
    ),
    (
        75,
        LARGE,
        "ten memories by their keys: the check of what an index found",
        "confirm expired_among shared_among scopes_of utilities",
    ),
    (
        110,
        LARGE,
        "ten rows by their keys, with what stands beside them",
        "memories_among graph_around wanted_points unknown_points waiting_among settle_deleted "
        "drop_sent_facts lease_index_work held_index_work add_sources",
    ),
    (
        250,
        LARGE,
        "every text that ten memories ever had, and whether another says it",
        "texts_to_bury",
    ),
    (
        450,
        LARGE,
        "ten memories are written, with all of their indexes",
        "delete_memories forget_successors forget_retrieved wake_memories cool_memories shorten_lives bury "
        "set_utilities enqueue_memories settle_index_work postpone_index_work prolong_index_work drop_expired",
    ),
    (
        80,
        LARGE,
        "a page in the order of an index",
        "export_owned owned_page session_page indexable_page quiet_episodes long_unused lock_unsent_facts "
        "tenants_with_expired tenants_with_uses",
    ),
    (
        80,
        LARGE,
        "one distillation",
        "add_candidates candidates drop_candidate_positions weigh_candidates embed_candidates sort_candidates "
        "select_candidates reword_candidates",
    ),
    (
        450,
        SMALL,
        "what a small tenant has, or one owner or session of it",
        "list_memories search_lexemes visible_count active_episodes own_places_to_consolidate unremoved "
        "count_uses injected_texts forget_recalls_of_session drop_candidates of_subject",
    ),
    (
        30,
        SMALL,
        "what is old, by its age; or a table of one row for each kind of work",
        "drop_old_retrievals drop_old_jobs drop_ended_sessions take_lease keep_lease finish_lease "
        "give_lease_back hold_lease overdue hasten release_leases calibrations calibrate forget_calibrations "
        "read_embedding set_embedding everything_is_enqueued has_points index_state index_is_whole",
    ),
]
UNBOUNDED = {
    "due_in_turn": "each tenant with a backlog has its turn",
    "index_outbox_age": "the backlog is counted",
    "unsent_facts": "the backlog is counted",
    "release_index_work": "once, when the only replica starts",
    "release_jobs": "once, when the only replica starts",
    "enqueue_everything": "another embedder: every memory is embedded again",
    "places_to_consolidate": "a pass comes by every episode once a day, place by place",
}
VARIANTS = {"of_subject": "list_memories"}
VALUES = {
    "add_candidates": {"positions": "ARRAY[9]"},
    "add_sources": {"memory": "'mem_' || md5('large20')"},
    "create_job": {"job": "'job_new'"},
    "insert_memory": {
        "memory": "'mem_new'",
        "external_id": "'new'",
        "content_hash": "sha256('new')",
        "fact_key": "sha256('new')",
        "status": "'active'",
        "successor": "NULL",
        "change": "'remembered'",
    },
    "indexable_page": {"after": "''"},
    "list_memories": {"subject": "NULL"},
    "next_tenant": {"after": "''"},
    "read_memory": {"as_of": "NULL"},
    "record_events": {"ids": "ARRAY['evt_new']", "tenants": "ARRAY['large']"},
    "record_recall": {"retrieval": "'ret_new'", "kind": "'search'"},
    "restate_memory": {
        "content_hash": "sha256('new')",
        "owner": "'tenant'",
        "scopes": "ARRAY['tenant', 'user:u-10']",
    },
    "texts_of_terms": {"words": "ARRAY['said', 'case', '15']", "terms": "ARRAY['15', 'case', 'said']"},
}


@pytest.fixture(scope="module", params=OTHERS)
async def connection(postgres_url: str, request: pytest.FixtureRequest) -> AsyncIterator[Connection]:
    pool = await connect_pool(await create_database(postgres_url), application="tests", max_size=2)
    await migrate(pool, MIGRATIONS_DIR, schema=SCHEMA)
    await gather(pool, HELD, also=OTHERS[request.param])
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
