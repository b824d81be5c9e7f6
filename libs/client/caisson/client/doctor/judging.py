"""From facts seen inside a sandbox to findings. Pure.

Invariant: a missing fact fails its check; a finding names variables, never their values.
"""

import re
from dataclasses import dataclass

from caisson.client.doctor.probes import Facts

FIRST_TENANT_UID = 10_000
AT_ONCE_MS = 1000
_CONNECTED, _REFUSED = 0, 1
_SECRET_NAME = re.compile(
    r"SECRET|TOKEN|PASSW|CREDENTIAL|PRIVATE|API_?KEY|ACCESS_?KEY|AUTHORIZATION|_KEY$", re.IGNORECASE
)
_SECRET_VALUE = re.compile(
    r"""
    \bcsn_[0-9a-f]+_[0-9a-f]{16,}           # a key of Caisson
    | \bsk-[A-Za-z0-9_-]{16,} | \bgh[pousr]_[A-Za-z0-9]{20,} | \bxox[abprs]-[A-Za-z0-9-]{10,} | \bAKIA[0-9A-Z]{16}
    | \beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+   # a JSON web token
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY
    | \b[a-z][a-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@  # a URL with a password
    | \bBearer\s+\S{8,}
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the report."""

    check: str
    holds: bool
    reason: str


def judge_identity(facts: Facts) -> list[Finding]:
    """Hold who the command is, and what it may, against the tenant's box."""
    uid, gid = _number(facts, "uid"), _number(facts, "gid")
    groups = set(_one(facts, "groups").split())
    own = uid >= FIRST_TENANT_UID and gid >= FIRST_TENANT_UID and groups == {str(gid)}
    capabilities = {name: _one(facts, name) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")}
    none = all(value and not value.strip("0") for value in capabilities.values())
    told = ", ".join(
        f"{name} {value or '?'}" for name, value in capabilities.items() if value.strip("0") or not value
    )
    no_new, seccomp = _one(facts, "NoNewPrivs"), _one(facts, "Seccomp")
    mode, owner = _one(facts, "workspace_mode"), _number(facts, "workspace_owner")
    return [
        Finding(
            check="tenant's own uid", holds=own, reason=f"uid {uid}, gid {gid}, groups {' '.join(sorted(groups))}"
        ),
        Finding(check="no capabilities", holds=none, reason="none in any set" if none else told),
        Finding(check="no new privileges", holds=no_new == "1", reason=f"NoNewPrivs {no_new or '?'}"),
        Finding(check="seccomp filter", holds=seccomp == "2", reason=f"Seccomp {seccomp or '?'}"),
        Finding(
            check="private workspace",
            holds=mode == "700" and owner == uid,
            reason=f"mode {mode or '?'}, owner {owner}",
        ),
    ]


def judge_environments(facts: Facts, *, api_key: str) -> Finding:
    """Look for anything like a secret in the environment of any process that the command can see."""
    check = "no secret in any environment"
    variables = facts.get("variable", [])
    suspicious = sorted({line.partition("=")[0] for line in variables if _is_secret(line, api_key)})
    if suspicious:
        return Finding(check=check, holds=False, reason=f"looks like one: {', '.join(suspicious)}")
    processes = len(facts.get("read", []))
    if not processes or not variables:
        return Finding(check=check, holds=False, reason="no environment could be read, not even the command's own")
    closed = len(facts.get("refused", []))
    return Finding(check=check, holds=True, reason=f"read: {processes}, closed to the command: {closed}")


def _is_secret(line: str, api_key: str) -> bool:
    name, _, value = line.partition("=")
    _, _, secret_part = api_key.rpartition("_")
    return bool(
        _SECRET_NAME.search(name)
        or _SECRET_VALUE.search(value)
        or api_key in line
        or (secret_part and secret_part in line)
    )


def judge_search(facts: Facts, *, nonce: str, workspace: str, own_uid: int, their_uid: int) -> list[Finding]:
    """Hold what tenant A found of tenant B while B held its workspace open."""
    check = "other tenant's files"
    own_file = f"{workspace}/{nonce}"
    others = sorted({path for path in facts.get("found", []) if not _is_own(path, own_file)})
    stolen = any(content.startswith("theirs") for content in facts.get("content", []))
    complete = facts.get("searched") == ["yes"] and own_file in facts.get("found", [])
    if stolen or others:
        files = Finding(check=check, holds=False, reason=f"reached {', '.join(others) or 'its content'}")
    elif not complete:
        files = Finding(check=check, holds=False, reason="the search did not come to its end")
    else:
        files = Finding(check=check, holds=True, reason="cannot be found or read by any path")
    uids = {value for value in facts.get("process", []) if value}
    seen = facts.get("seen", [])
    apart = their_uid >= FIRST_TENANT_UID and their_uid != own_uid and bool(uids) and str(their_uid) not in uids
    told = (
        f"visible: {', '.join(seen)}"
        if seen
        else f"own uid {own_uid}, theirs {their_uid}, uids in sight {_listed(uids)}"
    )
    return [files, Finding(check="other tenant's processes", holds=apart and not seen, reason=told)]


def _is_own(path: str, own_file: str) -> bool:
    """Tell whether a path is the searcher's own file, seen through its own processes as well."""
    if path == own_file:
        return True
    through_process = re.fullmatch(r"/proc/\d+/(?:root(?P<rooted>/.*)|cwd/(?P<name>[^/]+))", path)
    if through_process is None:
        return False
    return through_process["rooted"] == own_file or through_process["name"] == own_file.rpartition("/")[2]


def judge_outbound(facts: Facts, target: str, told: str, *, control: str) -> Finding:
    """Hold one attempt to get out against an immediate refusal; `control` is an address that must be reachable."""
    check = f"outbound: {told}"
    control_code, _ = _attempt(facts, control)
    code, took_ms = _attempt(facts, target)
    if control_code != _CONNECTED or code < 0:
        return Finding(check=check, holds=False, reason="could not be tried: not even the proxy was reached")
    if code == _CONNECTED:
        return Finding(check=check, holds=False, reason=f"{target} accepted a connection")
    if code != _REFUSED or took_ms >= AT_ONCE_MS:
        return Finding(check=check, holds=False, reason=f"{target} was not refused at once: {took_ms} ms")
    return Finding(check=check, holds=True, reason=f"{target} refused in {took_ms} ms")


def _attempt(facts: Facts, target: str) -> tuple[int, int]:
    code, _, took_ms = _one(facts, target).partition(" ")
    return (int(code), int(took_ms)) if code.isdigit() and took_ms.isdigit() else (-1, -1)


def judge_proxy(facts: Facts) -> Finding:
    """Hold the proxy's answer inside the sandbox against any HTTP status."""
    answer = _one(facts, "answer")
    holds = re.match(r"HTTP/1\.[01] [1-5]\d\d", answer) is not None
    return Finding(check="proxy from inside", holds=holds, reason=answer if holds else "no HTTP answer")


def _one(facts: Facts, name: str) -> str:
    values = facts.get(name, [])
    return values[0] if len(values) == 1 else ""


def _number(facts: Facts, name: str) -> int:
    value = _one(facts, name)
    return int(value) if value.isdigit() else -1


def _listed(values: set[str]) -> str:
    return " ".join(sorted(values)) or "none"
