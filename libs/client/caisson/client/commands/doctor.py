"""`caisson doctor`: the report of an examination."""

import re
from contextlib import aclosing

from rich.text import Text

from caisson.client.commands.desk import Desk
from caisson.client.commands.terminal import foreign
from caisson.client.doctor.examination import Examination
from caisson.client.doctor.judging import Finding

_WIDTH = 30


async def examine(desk: Desk, *, proxy_url: str | None) -> int:
    """Examine the stack, line by line; 0 only if everything holds."""
    examination = Examination(desk.client, api_key=desk.api_key, proxy_url=proxy_url)
    findings: list[Finding] = []
    async with aclosing(examination.findings()) as stream:
        async for finding in stream:
            findings.append(finding)
            if not desk.as_json:
                desk.terminal.out.print(line(finding))
    failed = sum(not finding.holds for finding in findings)
    if desk.as_json:
        checks = [{"check": item.check, "ok": item.holds, "reason": item.reason} for item in findings]
        desk.document({"ok": not failed, "checks": checks})
    elif failed:
        desk.terminal.out.print(Text(f"{failed} of {len(findings)} checks failed", style="bold red"))
    else:
        desk.terminal.out.print(Text(f"all {len(findings)} checks hold", style="bold green"))
    return 1 if failed else 0


def line(finding: Finding) -> Text:
    """Return a finding as one line."""
    mark = ("✓", "green") if finding.holds else ("✗", "bold red")
    reason = re.sub(r"\s+", " ", finding.reason)
    return Text.assemble(mark, " ", f"{finding.check:<{_WIDTH}} ", foreign(reason, "dim" if finding.holds else "red"))
