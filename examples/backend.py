"""What a product's backend writes: start a run for one of its customers, follow it, use the result.

With `make up` in one terminal and the example API in another, give acme its credential and run this:

    METRICS_TOKENS='{"token-of-acme": "acme"}' .venv/bin/python examples/metrics_api.py
    METRICS_TOKEN=token-of-acme .venv/bin/caisson credentials set acme metrics --bearer-from env:METRICS_TOKEN
    .venv/bin/python examples/backend.py acme u-1
"""

import asyncio
import json
import sys
from pathlib import Path

from caisson.client.client import Client

COMMANDS = (
    'curl -sS -f "$API_HOST/metrics/v1/tenants/$TENANT_ID/orders" > orders.json',
    "jq -r '.orders[] | [.region, .total] | @tsv' orders.json | sort",
    "jq '[.orders[].total] | add' orders.json",
)


async def report(access: dict[str, str], tenant: str, user: str) -> int:
    """Print a tenant's orders and their sum; return the sum."""
    async with Client(access["url"], access["api_key"], tenant=tenant, user=user) as caisson:
        run = await caisson.create_run(commands=COMMANDS, metadata={"report": "orders"})
        async for event in caisson.events(run.id):
            if event.type == "step.output":
                print(event.data["text"], end="")
        run = await caisson.wait(run.id)
    if not run.succeeded:
        raise SystemExit(f"run {run.id} {run.status}: {run.error['detail']}")
    last = run.steps[-1].stdout
    return int(last.text) if last else 0


if __name__ == "__main__":
    where = json.loads(Path(".caisson/client.json").read_text())
    print("sum:", asyncio.run(report(where, sys.argv[1], sys.argv[2])))
