"""Which scopes a header names."""

import pytest

from caisson.common.errors import InvalidInput
from caisson.gateway.domain.scopes import read_scopes

READ = [
    ("team:a", ["team:a"], "one"),
    ("team:a,team:b", ["team:a", "team:b"], "two"),
    (" team:a ,\tteam:b\t", ["team:a", "team:b"], "spaces around them"),
    ('"team:a"', ["team:a"], "quoted without need"),
    ('user:x, "user:Doe, Ana" ,team:a', ["user:x", "user:Doe, Ana", "team:a"], "a comma inside"),
    (r'"on \"call\""', ['on "call"'], "quotes inside"),
    (r'"a\\","b"', ["a\\", "b"], "a backslash before the end"),
    (r"a\,b", ["a\\", "b"], "a backslash outside of quotes is no escape"),
    ('5" pipes,b', ['5" pipes', "b"], "a quote that begins no name"),
    ("日本,😀", ["日本", "😀"], "any script"),
    (",".join(f'"{n},"' for n in range(64)), [f"{n}," for n in range(64)], "as many as may be"),
]


@pytest.mark.parametrize(("given", "scopes", "reason"), READ, ids=[row[2] for row in READ])
def test_names_stand_between_commas_or_in_quotes(given: str, scopes: list[str], reason: str) -> None:
    assert read_scopes(given) == scopes


REFUSED = [
    ("", "nothing"),
    ("a,", "nothing after a comma"),
    ('a,"",b', "an empty name in quotes"),
    ('"a', "a quote that does not end"),
    ('"a\\"', "a quote that ends escaped"),
    ('"a"b', "a name after a quote"),
    ('"a" "b"', "no comma"),
    ('" a"', "a space at the beginning"),
    ('"a\tb"', "unprintable"),
    ("x" * 129, "a long name"),
    (",".join("a" * 65), "too many, although of one name"),
    ('"' * 20_000, "quotes alone"),
    ('"' + "\\" * 20_001, "escapes alone"),
]


@pytest.mark.parametrize(("given", "reason"), REFUSED, ids=[row[1] for row in REFUSED])
def test_what_names_no_scopes_is_refused_by_the_header(given: str, reason: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_scopes(given)
    assert [item.field for item in refused.value.fields] == ["Caisson-Scopes"]
