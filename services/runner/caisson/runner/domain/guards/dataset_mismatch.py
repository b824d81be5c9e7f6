"""The guard against a dataset that the run was not given.

Invariant: where a name or a path may mean something else, only a value with the form of a dataset id is a violation.
"""

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import Final

from caisson.runner.domain.guards import parameters, raw_text
from caisson.runner.domain.guards.commands import unwrapped
from caisson.runner.domain.guards.decision import Trusted
from caisson.runner.domain.guards.requests import Origin, Text, pieces, request_texts, urls_in
from caisson.runner.domain.guards.script import Script, Violation
from caisson.runner.domain.guards.words import UNKNOWN, Word

GUARD: Final = "dataset_mismatch"
_CERTAIN: Final = frozenset({"datasetid", "xdatasetid", "datasetids"})
_LIKELY: Final = frozenset({"dataset", "datasets", "xdataset"})
_SEGMENTS: Final = frozenset({"dataset", "datasets"})
_USUAL_PREFIX: Final = "ds_"
_PREFIX: Final = re.compile(r"[A-Za-z]+[_-]")
_LITERAL: Final = re.compile(r"[\w.:-]+")
_PATH: Final = re.compile(r"(?:^|[/=@])datasets?/([^/\s]{1,128})")


def find(script: Script, trusted: Trusted) -> Violation | None:
    """Return the first foreign dataset that a script names in a request, an option or a path."""
    for text in request_texts(script):
        for value in _in_request(text, trusted):
            if not parameters.spellings(value) & set(trusted.datasets):
                return Violation(
                    guard=GUARD,
                    reason=_reason(value, trusted),
                    text=script.text,
                    start=text.word.start,
                    end=text.word.end,
                )
    for word, value in _in_commands(script, trusted):
        if value not in trusted.datasets:
            return Violation(
                guard=GUARD, reason=_reason(value, trusted), text=script.text, start=word.start, end=word.end
            )
    return None


def find_raw(text: str, trusted: Trusted) -> Violation | None:
    """Return the first foreign dataset of unparsed text, if the text sends requests at all."""
    if not raw_text.sends_requests(text):
        return None
    for name, value, start, end in raw_text.parameters(text):
        if name in _CERTAIN and _given_or_formed(value, trusted) and value not in trusted.datasets:
            return raw_text.violation(GUARD, _reason(value, trusted), text, start, end)
    return None


def _in_request(text: Text, trusted: Trusted) -> Iterator[str]:
    for piece in pieces(text):
        sources = [parameters.in_query(piece), parameters.in_headers(piece), parameters.in_json(piece)]
        if text.origin in {Origin.ARGUMENT, Origin.BODY}:
            sources.append(parameters.in_form(piece))
        for source in sources:
            for found in source:
                certain = found.name in _CERTAIN and _given_or_formed(found.value, trusted)
                if certain or (found.name in _LIKELY and _formed(found.value, trusted)):
                    yield found.value
    for url in urls_in(text, trusted.environment.get("API_HOST", "")):
        for segment, value in parameters.in_path(url):
            if segment in _SEGMENTS and _formed(value, trusted):
                yield value


def _in_commands(script: Script, trusted: Trusted) -> Iterator[tuple[Word, str]]:
    """Yield the values of dataset options, and the folders of datasets in paths, with the form of an id."""
    for command in script.commands:
        if command.name in {"echo", "printf", "grep", "sed", "awk", "jq", "git"}:
            continue
        for inner in unwrapped(command):
            yield from _options(inner.arguments, trusted)
        for word in (*command.arguments, *command.flow.files):
            for text in word.texts:
                if "://" not in text and not re.search(r"\s", text):
                    yield from ((word, found[1]) for found in _PATH.finditer(text) if _formed(found[1], trusted))


def _options(words: tuple[Word, ...], trusted: Trusted) -> Iterator[tuple[Word, str]]:
    for word, following in zip_longest(words, words[1:]):
        option, has_value, value = word.text.partition("=")
        if not option.startswith("--") or parameters.fold(option) not in _CERTAIN | _LIKELY:
            continue
        texts = (value,) if has_value else following.texts if following else ()
        yield from ((word, text) for text in texts if _formed(text, trusted))


def _given_or_formed(value: str, trusted: Trusted) -> bool:
    return bool(trusted.datasets) or _formed(value, trusted)


def _formed(value: str, trusted: Trusted) -> bool:
    """Say whether a literal looks like the run's dataset ids, or like a dataset id at all."""
    if UNKNOWN in value or not _LITERAL.fullmatch(value):
        return False
    prefixes = {found[0] for known in trusted.datasets if (found := _PREFIX.match(known))} | {_USUAL_PREFIX}
    return value.startswith(tuple(prefixes))


def _reason(value: str, trusted: Trusted) -> str:
    given = ", ".join(trusted.datasets[:8]) or "none"
    return (
        f"The dataset {value[:64]!r} is not one of this run's datasets ({given}): use one of those, or $DATASET_ID."
    )
