"""What a product's backend asks of the gateway, in one line each."""

from typing import Any

import httpx

# Of run $1, $2 copies: more runs than anyone wants to ask for one by one.
COPIES = """
WITH runs AS (
    INSERT INTO ledger.runs (run_id, tenant_id, user_id, plan, timeout_s)
    SELECT run_id || '_' || number, tenant_id, user_id, plan, timeout_s
    FROM ledger.runs, generate_series(1, $2::integer) number WHERE run_id = $1
    RETURNING run_id
)
INSERT INTO ledger.steps (step_id, run_id, index, kind, command, timeout_s)
SELECT run_id || '_0', run_id, 0, 'bash', 'true', 60 FROM runs
"""


async def submit(product: httpx.AsyncClient, *commands: str, **changes: Any) -> str:
    """Start a run of bash commands and return its id."""
    steps = [{"bash": {"command": command}} for command in commands or ("true",)]
    response = await product.post("/v1/runs", json={"steps": steps, **changes})
    assert response.status_code == 202, response.text
    return str(response.json()["id"])


async def the_run(product: httpx.AsyncClient, run_id: str, *, wait_s: float | None = None) -> dict[str, Any]:
    """Return a run, as it stands or once it is finished."""
    response = await product.get(f"/v1/runs/{run_id}", params={} if wait_s is None else {"wait_s": wait_s})
    assert response.status_code == 200, response.text
    run: dict[str, Any] = response.json()
    return run


async def cancel(product: httpx.AsyncClient, run_id: str) -> dict[str, Any]:
    """Cancel a run and return it as it stands."""
    response = await product.post(f"/v1/runs/{run_id}/cancel")
    assert response.status_code == 202, response.text
    run: dict[str, Any] = response.json()
    return run
