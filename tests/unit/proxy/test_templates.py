"""Path templates."""

import pytest

from caisson.proxy.domain.templates import TemplateInvalid, compile_place, compile_rule

RULES = (
    ("/v1/**", "/v1", True, "the rest may be nothing"),
    ("/v1/**", "/v1/", True, "or a slash"),
    ("/v1/**", "/v1/a/b", True, "or anything"),
    ("/v1/**", "/v1x", False, "but begins with a slash"),
    ("/v1/**", "/V1/a", False, "case counts"),
    ("/v1/*/x", "/v1/a/x", True, "one segment"),
    ("/v1/*/x", "/v1/a/b/x", False, "and not two"),
    ("/v1/*/x", "/v1//x", False, "and not none"),
    ("/v1/{id}", "/v1/a", True, "a named segment"),
    ("/v1/{id}", "/v1/a/", False, "a trailing slash counts"),
    ("/**", "/", True, "everything"),
    ("/a b", "/a%20b", True, "a literal is written as it looks"),
    ("/a.b", "/axb", False, "a dot is a dot"),
)


@pytest.mark.parametrize(("template", "path", "matches", "reason"), RULES, ids=[reason for *_, reason in RULES])
def test_a_rule_matches_canonical_paths(template: str, path: str, matches: bool, reason: str) -> None:  # noqa: FBT001
    assert bool(compile_rule(template).pattern.fullmatch(path.encode())) is matches


@pytest.mark.parametrize("path", ["/v1/Tenants/b", "/V1/TENANTS/b/", "/v1/tenants/b/x"])
def test_neither_case_nor_a_trailing_slash_hides_a_place(path: str) -> None:
    match = compile_place("/v1/tenants/{tenant}/**").pattern.fullmatch(path.encode())
    assert match is not None
    assert match["tenant"] == b"b"


@pytest.mark.parametrize("template", ["v1", "/v1/**/x", "/v1/a*", "/{a}/{a}", "/{A}", "/..", "/a//{b"])
def test_what_is_no_template_is_refused(template: str) -> None:
    with pytest.raises(TemplateInvalid):
        compile_rule(template)
