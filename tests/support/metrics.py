"""Reading a service's metrics."""

import httpx

from caisson.stack.service_process import ServiceProcess


async def metric(service: ServiceProcess, name: str) -> float:
    """Return the value of a metric without labels."""
    async with httpx.AsyncClient(trust_env=False) as client:
        text = (await client.get(f"{service.addresses['admin']}/metrics")).text
    return next(float(line.split()[1]) for line in text.splitlines() if line.startswith(f"{name} "))
