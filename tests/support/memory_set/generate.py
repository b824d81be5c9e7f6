"""Makes the question set from patterns and a seed: `python -m tests.support.memory_set.generate` writes it anew.

Invariant: the same seed makes the same bytes.
"""

import json
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.support.memory_set.facts import (
    EPISODES,
    MEANINGS,
    NEGATIONS,
    NUMBERS,
    OWN,
    PEOPLE,
    SERVICES,
    UPDATES,
    WORK,
    Fact,
)
from tests.support.memory_set.foreign import FOREIGN, OFF_TOPIC, SAME_TOPIC, TRAPS
from tests.support.memory_set.pools import COLLEAGUES, POOLS, TEAMS, TENANTS
from tests.support.memory_set.temporal import ERAS

SEED = 20_260_301
FILE = Path(__file__).parents[3] / "services/memory/caisson/memory/questions.json"

_LEVELS = ("easy", "medium", "hard")
_OWN_PER_USER = 7
_BEGAN = datetime(2025, 1, 1, tzinfo=UTC)


class Draw:
    """Values for the slots of one tenant; no two memories of it take the same contract, port or extension."""

    def __init__(self, rng: random.Random, tenant: str) -> None:
        self.rng = rng
        self.tenant = tenant
        self._port = 8_080 + 20 * list(TENANTS).index(tenant)
        self._contract = 4_100 + 100 * list(TENANTS).index(tenant)
        self._day = 13
        self._extension = 210 + 30 * list(TENANTS).index(tenant)

    def values(self, **given: str) -> dict[str, str]:
        """Return a value for every slot; neighbours differ by one."""
        self._port, self._contract, self._extension = self._port + 1, self._contract + 1, self._extension + 1
        self._day = 13 + (self._day - 12) % 8
        drawn = {name: self.rng.choice(pool) for name, pool in sorted(POOLS.items())}
        numbers = {
            "number": str(self.rng.randint(1_000, 9_999)),
            "days": str(self.rng.choice((14, 21, 30, 45, 60, 90))),
            "salary": f"{self.rng.randint(48, 97)},500",
            "digits": f"{self.rng.randint(10, 99)}-{self.rng.randint(10, 99)}-{self.rng.randint(10, 99)}",
            "port": str(self._port),
            "contract": str(self._contract),
            "day": f"{self._day}",
            "extension": str(self._extension),
            "code": f"{self.tenant[:2].upper()}-{self._contract + 1_000}",
        }
        people = {"who": self.rng.choice(COLLEAGUES[self.tenant]), "team": self.rng.choice(TEAMS[self.tenant])}
        return drawn | numbers | people | given


class Set:
    """The set as it grows. A tenant's last user is of no team."""

    def __init__(self) -> None:
        self.memories: list[dict[str, Any]] = []
        self.questions: list[dict[str, Any]] = []

    def remember(self, tenant: str, user: str, text: str, *, scopes: Sequence[str] | None = None, **more: Any) -> str:
        """Add a memory and return its id; without scopes it is the user's own."""
        memory_id = f"m{len(self.memories) + 1:04}"
        fields = {"layer": "semantic", "valid_from": _BEGAN.isoformat(), "valid_to": None} | more
        whose = list(scopes or (f"user:{user}",))
        self.memories.append(
            {"id": memory_id, "tenant": tenant, "user": user, "scopes": whose, "text": text} | fields
        )
        return memory_id

    def ask(
        self, slice_: str, tenant: str, user: str, text: str, relevant: Sequence[str], as_of: str | None = None
    ) -> None:
        """Add a question that some memories answer, or none."""
        question_id = f"q{len(self.questions) + 1:04}"
        scopes = [] if user == TENANTS[tenant][-1] else [f"team:{team}" for team in TEAMS[tenant]]
        who = {"id": question_id, "slice": slice_, "tenant": tenant, "user": user, "scopes": scopes}
        self.questions.append(who | {"text": text, "relevant": list(relevant), "as_of": as_of})


def generate(seed: int = SEED) -> dict[str, Any]:
    """Return the whole set."""
    rng = random.Random(seed)
    made = Set()
    foreign = list(FOREIGN)
    rng.shuffle(foreign)
    for place, (tenant, users) in enumerate(TENANTS.items()):
        draw = Draw(rng, tenant)
        _work(made, draw, users)
        _people(made, draw, users)
        _own(made, draw, users)
        _episodes(made, draw, users)
        _updates(made, draw, users)
        _negations(made, draw, users)
        _numbers(made, draw, users)
        _eras(made, draw, users, place)
        _foreign(made, draw, users, foreign[place :: len(TENANTS)])
    _traps(made, rng)
    _abstentions(made, rng)
    return {"name": "caisson-memory", "seed": seed, "memories": made.memories, "questions": made.questions}


def _ask_one(made: Set, draw: Draw, user: str, fact: Fact, values: dict[str, str], relevant: str) -> None:
    """Ask for a memory at a drawn level."""
    level = draw.rng.choice(_LEVELS)
    made.ask(level, draw.tenant, user, getattr(fact, level).format(**values), [relevant])


def _work(made: Set, draw: Draw, users: Sequence[str]) -> None:
    for fact in draw.rng.sample(WORK, 15):
        values = draw.values()
        memory = made.remember(draw.tenant, users[0], fact.text.format(**values), scopes=["tenant"])
        _ask_one(made, draw, draw.rng.choice(users), fact, values, memory)


def _people(made: Set, draw: Draw, users: Sequence[str]) -> None:
    for who in COLLEAGUES[draw.tenant]:
        for fact in PEOPLE:
            values = draw.values(who=who)
            of_team = draw.rng.random() < 0.2
            scopes = [f"team:{draw.rng.choice(TEAMS[draw.tenant])}"] if of_team else ["tenant"]
            memory = made.remember(draw.tenant, users[1], fact.text.format(**values), scopes=scopes)
            if of_team:
                made.ask("cross-tenant trap", draw.tenant, users[-1], fact.easy.format(**values), [])
            if draw.rng.random() < 0.4:
                _ask_one(made, draw, draw.rng.choice(users[:-1]), fact, values, memory)


def _own(made: Set, draw: Draw, users: Sequence[str]) -> None:
    """The first two users keep much to themselves; the third asks for what only the others know."""
    for user in users[:2]:
        for fact in draw.rng.sample(OWN, _OWN_PER_USER):
            values = draw.values()
            memory = made.remember(draw.tenant, user, fact.text.format(**values))
            _ask_one(made, draw, user, fact, values, memory)
            if draw.rng.random() < 0.3:
                made.ask("cross-tenant trap", draw.tenant, users[2], fact.medium.format(**values), [])


def _episodes(made: Set, draw: Draw, users: Sequence[str]) -> None:
    for fact in EPISODES:
        values = draw.values()
        memory = made.remember(draw.tenant, users[0], fact.text.format(**values), scopes=["tenant"], layer="episodic")
        _ask_one(made, draw, draw.rng.choice(users), fact, values, memory)


def _updates(made: Set, draw: Draw, users: Sequence[str]) -> None:
    """An older fact ended when the newer one began; only the newer one may be told."""
    for fact in UPDATES:
        who, team = draw.rng.choice(COLLEAGUES[draw.tenant]), draw.rng.choice(TEAMS[draw.tenant])
        fixed = {"team": team} if "{team}" in fact.text else {"who": who}
        old, new = _two_values(draw, fact, fixed)
        changed = "2026-01-15T00:00:00+00:00"
        shared: dict[str, Any] = {"scopes": ["tenant"]}
        made.remember(draw.tenant, users[0], fact.text.format(**old), valid_to=changed, **shared)
        memory = made.remember(draw.tenant, users[0], fact.text.format(**new), valid_from=changed, **shared)
        for level in draw.rng.sample(_LEVELS, 2):
            made.ask("update", draw.tenant, draw.rng.choice(users), getattr(fact, level).format(**new), [memory])


def _two_values(draw: Draw, fact: Fact, fixed: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    old = draw.values(**fixed)
    while fact.text.format(**(new := draw.values(**fixed))) == fact.text.format(**old):
        pass
    return old, new


def _negations(made: Set, draw: Draw, users: Sequence[str]) -> None:
    """Each colleague likes one dish and does not like another."""
    likes, dislikes, *others = NEGATIONS
    for who in COLLEAGUES[draw.tenant]:
        foods = draw.rng.sample(POOLS["food"], 2)
        for fact, food in ((likes, foods[0]), (dislikes, foods[1])):
            values = draw.values(who=who, food=food)
            memory = made.remember(draw.tenant, users[0], fact.text.format(**values), scopes=["tenant"])
            question = getattr(fact, draw.rng.choice(_LEVELS)).format(**values)
            made.ask("negation", draw.tenant, draw.rng.choice(users), question, [memory])
    for fact in others:
        values = draw.values()
        memory = made.remember(draw.tenant, users[0], fact.text.format(**values), scopes=["tenant"])
        question = getattr(fact, draw.rng.choice(_LEVELS)).format(**values)
        made.ask("negation", draw.tenant, draw.rng.choice(users), question, [memory])


def _numbers(made: Set, draw: Draw, users: Sequence[str]) -> None:
    """Neighbours that differ by one."""
    port, deadline, error, extension = NUMBERS
    rows = [(port, {"service": name}) for name in SERVICES] + [(deadline, {})] * 4
    rows += [(error, {"meaning": meaning}) for meaning in MEANINGS]
    rows += [(extension, {"who": who}) for who in COLLEAGUES[draw.tenant]]
    for fact, given in rows:
        values = draw.values(**given)
        memory = made.remember(draw.tenant, users[0], fact.text.format(**values), scopes=["tenant"])
        if draw.rng.random() < 0.7:
            question = getattr(fact, draw.rng.choice(_LEVELS)).format(**values)
            made.ask("near number", draw.tenant, draw.rng.choice(users), question, [memory])


def _eras(made: Set, draw: Draw, users: Sequence[str], place: int) -> None:
    for era in ERAS:
        values = [era.values[(at + place) % len(era.values)][1] for at in range(len(era.values))]
        days = [f"{day}T00:00:00+00:00" for day, _ in era.values]
        for value, (begin, end) in zip(values, zip(days, [*days[1:], None], strict=True), strict=True):
            memory = made.remember(
                draw.tenant,
                users[0],
                era.text.format(value=value),
                scopes=["tenant"],
                valid_from=begin,
                valid_to=end,
            )
            if draw.rng.random() < 0.6:
                as_of = begin.replace("T00", "T12") if end else None
                made.ask("temporal", draw.tenant, draw.rng.choice(users), era.question, [memory], as_of)


def _foreign(made: Set, draw: Draw, users: Sequence[str], rows: Sequence[Any]) -> None:
    for row in rows:
        memory = made.remember(draw.tenant, users[0], row.text, scopes=["tenant"])
        made.ask("multilingual", draw.tenant, draw.rng.choice(users), row.question, [memory])
        if row.english:
            made.ask("multilingual", draw.tenant, draw.rng.choice(users), row.english, [memory])


def _traps(made: Set, rng: random.Random) -> None:
    """One tenant knows; every other one asks."""
    for place, (text, question) in enumerate(TRAPS):
        owner = list(TENANTS)[place % len(TENANTS)]
        values = Draw(rng, owner).values()
        made.remember(owner, TENANTS[owner][0], text.format(**values), scopes=["tenant"])
        for tenant in TENANTS:
            if tenant != owner:
                made.ask("cross-tenant trap", tenant, rng.choice(TENANTS[tenant]), question.format(**values), [])


def _abstentions(made: Set, rng: random.Random) -> None:
    for question, tenant in _spread(rng, SAME_TOPIC) + _spread(rng, OFF_TOPIC):
        who = rng.choice(COLLEAGUES[tenant])
        made.ask("abstention", tenant, rng.choice(TENANTS[tenant]), question.format(who=who), [])


def _spread(rng: random.Random, questions: Sequence[str]) -> list[tuple[str, str]]:
    return [(question, rng.choice(list(TENANTS))) for question in questions]


def render(whole: dict[str, Any]) -> str:
    """Return the file: one memory or question a line, so that a change can be read."""
    head = {name: whole[name] for name in ("name", "seed")}
    lines = "".join(_lines(whole))
    return json.dumps(head, indent=1)[:-2] + lines + "\n}\n"


def _lines(whole: dict[str, Any]) -> Iterator[str]:
    for name in ("memories", "questions"):
        rows = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in whole[name])
        yield f',\n "{name}": [\n{rows}\n ]'


if __name__ == "__main__":
    FILE.write_text(render(generate()))
