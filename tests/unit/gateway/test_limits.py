"""A run gets what it asked for within the tenant's ceilings; there is no "no limit"."""

import math

import pytest

from caisson.common.errors import InvalidInput
from caisson.common.leases import Limits
from caisson.gateway.domain.limits import (
    DEFAULT_CEILINGS,
    DEFAULT_LIMITS,
    SYSTEM_CEILINGS,
    LimitExceeded,
    PartialLimits,
    Tenant,
    check_within,
    resolve,
)

FIELDS = sorted(Limits.model_fields)


def tenant(*, limits: Limits = DEFAULT_LIMITS, ceilings: Limits = DEFAULT_CEILINGS) -> Tenant:
    return Tenant(
        tenant_id="acme",
        uid=10_000,
        max_concurrency=4,
        max_attempts=3,
        retention_days=30,
        limits=limits,
        ceilings=ceilings,
    )


def wish(**values: float) -> PartialLimits:
    return PartialLimits().model_copy(update=values)


def test_what_is_left_out_takes_the_tenants_default() -> None:
    own = DEFAULT_LIMITS.model_copy(update={"memory_mib": 777})
    resolved = resolve(wish(pids=9), tenant=tenant(limits=own))
    assert resolved == own.model_copy(update={"pids": 9})
    assert resolve(None, tenant=tenant()) == DEFAULT_LIMITS


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", [0, -1, -0.0, -math.inf, math.nan])
def test_zero_less_and_nan_are_refused_and_never_mean_no_limit(field: str, value: float) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_within({field: value}, ceilings=DEFAULT_CEILINGS, where="limits")
    assert [item.field for item in refused.value.fields] == [f"limits.{field}"]


@pytest.mark.parametrize("field", FIELDS)
def test_a_wish_at_the_ceiling_is_granted_and_one_above_is_refused_with_the_ceiling(field: str) -> None:
    ceiling = getattr(DEFAULT_CEILINGS, field)
    assert getattr(resolve(wish(**{field: ceiling}), tenant=tenant()), field) == ceiling
    for above in (ceiling + 1, math.inf):
        with pytest.raises(LimitExceeded) as refused:
            check_within({field: above}, ceilings=DEFAULT_CEILINGS, where="limits")
        assert [(item.field, item.message) for item in refused.value.fields] == [
            (f"limits.{field}", f"at most {ceiling}")
        ]


def test_every_wish_above_its_ceiling_is_named_at_once() -> None:
    with pytest.raises(LimitExceeded) as refused:
        resolve(wish(pids=10**6, cpus=1e6, memory_mib=64), tenant=tenant())
    assert {item.field for item in refused.value.fields} == {"limits.pids", "limits.cpus"}


def test_a_default_above_a_lowered_ceiling_yields_to_it() -> None:
    low = DEFAULT_CEILINGS.model_copy(update={"memory_mib": 128})
    assert resolve(None, tenant=tenant(ceilings=low)).memory_mib == 128


@pytest.mark.parametrize("field", FIELDS)
def test_the_systems_numbers_are_in_order(field: str) -> None:
    assert 0 < getattr(DEFAULT_LIMITS, field) <= getattr(DEFAULT_CEILINGS, field) <= getattr(SYSTEM_CEILINGS, field)
