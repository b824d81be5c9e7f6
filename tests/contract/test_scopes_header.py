"""What the client writes into `Caisson-Scopes` is what the gateway reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caisson.client.calls import Identity
from caisson.client.errors import InvalidInput
from caisson.gateway.domain.scopes import read_scopes

NAMES = ["team:a", "user:Doe, Ana", '"quoted"', '"', "a\\", ",", "a,b,c", '\\"', "日本, 😀"]


def carried(*scopes: str) -> list[str]:
    return read_scopes(Identity(scopes=scopes).headers()[b"caisson-scopes"].decode())


def test_every_name_arrives_whole() -> None:
    assert carried(*NAMES) == NAMES


@given(
    st.lists(st.text(st.sampled_from('a,"\\ b'), min_size=1).filter(lambda name: name == name.strip()), min_size=1)
)
def test_whatever_signs_names_are_made_of_they_arrive_whole(names: list[str]) -> None:
    assert carried(*names[:64]) == names[:64]


@pytest.mark.parametrize("name", ["", " a", "a ", "a\tb", "\u200b"])
def test_a_name_that_no_gateway_takes_is_not_sent(name: str) -> None:
    with pytest.raises(InvalidInput):
        Identity(scopes=(name,))
