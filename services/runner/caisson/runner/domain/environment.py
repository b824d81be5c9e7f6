"""Layer 1: what a command sees in its environment.

Invariant: the values that Caisson gives win over the run's own; nothing of the runner's environment is inherited.
"""

from caisson.common.leases import Grant
from caisson.runner.domain.layout import API_HOST, COMMAND_PATH, WORKSPACE


def command_environment(grant: Grant) -> dict[str, str]:
    """Return the whole environment of the run's commands. `DATASET_ID` is the first of the run's datasets."""
    given = {
        "TENANT_ID": grant.tenant_id,
        "USER_ID": grant.user_id,
        "RUN_ID": grant.run_id,
        "REQUEST_ID": grant.request_id,
        "WORKSPACE": WORKSPACE,
        "HOME": WORKSPACE,
        "API_HOST": API_HOST,
        "PATH": COMMAND_PATH,
        "LANG": "C.UTF-8",
    }
    if grant.datasets:
        given["DATASET_ID"] = grant.datasets[0]
    return {**grant.env, **given}
