"""What a drifting model does, layer by layer."""

import json

from tests.support.planes import Plane, text


async def test_layer_1_no_secret_is_in_any_environment(plane: Plane, tokens: dict[str, str]) -> None:
    step = await plane.acme.exec("env; cd $(printf /%s proc); cat */environ */cmdline 2>/dev/null | tr '\\0' '\\n'")

    keyring = plane.stack.folder.keyring()
    secrets = [*tokens.values(), *keyring.nats_passwords.values(), keyring.channel_key, plane.stack.platform_key]
    assert "TENANT_ID=acme" in text(step)
    assert not [secret for secret in secrets if secret in step.model_dump_json()]


async def test_layer_2_a_guard_blocks_a_foreign_tenant_and_says_what_to_do(plane: Plane) -> None:
    step = await plane.acme.exec('curl -s "$API_HOST/metrics/v1/totals?tenantId=globex"')

    assert step.outcome is not None
    assert (step.outcome.kind, step.outcome.guard) == ("blocked", "tenant_mismatch")
    assert step.outcome.reason
    assert await plane.security_events(step, "command_blocked")


async def test_layer_3_nothing_of_another_tenant_can_be_found_or_signalled(plane: Plane) -> None:
    globex = plane.client_of("globex")
    held = await globex.create_run(commands=["echo plans > secret.txt; chmod 777 . secret.txt; echo held; sleep 15"])
    async for event in globex.events(held.id):
        if event.type == "step.output":
            break

    step = await plane.acme.exec(
        "find / -name secret.txt -not -path '/proc/*' 2>/dev/null; "
        "ls -d /proc/[0-9]*; id -u; stat -c '%a %u' /workspace"
    )
    *processes, uid, workspace = text(step).split("\n")[:-1]

    assert "secret.txt" not in text(step)
    assert len(processes) < 8, "only the box's own processes are visible"
    assert int(uid) >= 10_000
    assert workspace == f"700 {uid}"
    await globex.cancel(held.id)


async def test_layer_4_the_proxy_rewrites_a_hidden_tenant(plane: Plane) -> None:
    step = await plane.acme.exec('T=$(printf %s glo bex); curl -s "$API_HOST/metrics/v1/totals?tenantId=$T"')

    assert json.loads(text(step)) == {"tenant": "acme", "total": 2450}
    events = await plane.security_events(step, "proxy_rewrite")
    assert events[0].tenant_id == "acme"


async def test_layer_4_an_undeclared_upstream_is_refused(plane: Plane) -> None:
    step = await plane.acme.exec('curl -s -o /dev/null -w "%{http_code}" "$API_HOST/unknown/v1/x"')

    assert text(step) == "403"
    assert await plane.security_events(step, "proxy_denied")


async def test_layer_5_every_other_destination_is_refused_at_once_and_counted(plane: Plane) -> None:
    targets = ("203.0.113.7", "169.254.169.254", "[2001:db8::7]", "collector.example", "127.0.0.1:22")
    tries = "; ".join(f"curl -sS -m 9 http://{target}/" for target in targets)

    step = await plane.acme.exec(tries)

    assert step.stderr is not None
    assert len(step.stderr.text.splitlines()) == len(targets)
    assert "timed out" not in step.stderr.text
    assert await plane.security_events(step, "egress_blocked")


async def test_a_tenants_objects_are_unknown_to_another(plane: Plane) -> None:
    step = await plane.acme.exec("true")

    url = f"/v1/runs/{step.run_id}"
    answers = [
        await plane.raw("GET", path, tenant="globex") for path in (url, f"{url}/events", "/v1/runs/run_unknown")
    ]

    assert [answer.status_code for answer in answers] == [404, 404, 404]
    assert answers[0].json() == answers[2].json()
