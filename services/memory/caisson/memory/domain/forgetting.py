"""What a deletion reaches: the memory, what was derived from it, and sources that nobody else uses.

Invariant: nothing that remains was made from anything that goes: a summary is rebuilt from its other sources, or
dropped. Pure: a graph in, a plan out.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass

MIN_SOURCES = 2
"""A summary of fewer is no summary: it is dropped and what is left of its sources is woken."""

Edge = tuple[str, str]
"""A derived memory and one of its sources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What goes, what is made again from which sources (in this order), and which sources come back for a summary."""

    delete: frozenset[str]
    rebuild: dict[str, tuple[str, ...]]
    wake: frozenset[str]


def plan(
    asked: Collection[str], edges: Iterable[Edge], *, summaries: Collection[str], material: Collection[str]
) -> Plan:
    """Plan a deletion.

    Args:
        asked: the memories to be forgotten.
        edges: every edge of the graph around them.
        summaries: those memories that can be made again from sources.
        material: those sources that exist for what is made from them, and go once nothing else is.
    """
    sources, derived = _both_ways(edges)
    going: set[str] = set(asked)
    rebuild: dict[str, tuple[str, ...]] = {}
    known = -1
    while known != len(going):
        known = len(going)
        _take_unused_sources(going, asked, material, sources, derived)
        rebuild = _decide_derived(going, sources, derived, summaries)
    woken = _orphans(going, sources, derived) - rebuild.keys()
    return Plan(delete=frozenset(going), rebuild=_sources_first(rebuild), wake=woken)


def summaries_above(changed: str, edges: Iterable[Edge], *, summaries: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return the summaries that a changed memory went into, with their sources, in the order to make them."""
    sources, derived = _both_ways(edges)
    above: dict[str, tuple[str, ...]] = {}
    reached = list(derived[changed])
    while reached:
        memory = reached.pop()
        if memory in summaries and memory not in above:
            above[memory] = tuple(sorted(sources[memory]))
            reached.extend(derived[memory])
    return _sources_first(above)


def _both_ways(edges: Iterable[Edge]) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    sources: dict[str, set[str]] = defaultdict(set)
    derived: dict[str, set[str]] = defaultdict(set)
    for memory, source in edges:
        sources[memory].add(source)
        derived[source].add(memory)
    return sources, derived


def _take_unused_sources(
    going: set[str],
    asked: Collection[str],
    material: Collection[str],
    sources: dict[str, set[str]],
    derived: dict[str, set[str]],
) -> None:
    """Go down from what was asked for: a source goes once all that was made from it goes."""
    reached = [below for memory in asked for below in sources[memory]]
    while reached:
        source = reached.pop()
        if source in material and derived[source] <= going:
            if source not in going:
                reached.extend(sources[source])
            going.add(source)


def _decide_derived(
    going: set[str], sources: dict[str, set[str]], derived: dict[str, set[str]], summaries: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """Go up from what goes: each derived memory is made again or goes too, and what was made from it follows."""
    rebuild: dict[str, tuple[str, ...]] = {}
    reached = [above for memory in going for above in derived[memory]]
    while reached:
        memory = reached.pop()
        if memory in going:
            continue
        remaining = tuple(sorted(sources[memory] - going))
        if memory in summaries and len(remaining) >= MIN_SOURCES:
            if rebuild.get(memory) == remaining:
                continue
            rebuild[memory] = remaining
        else:
            going.add(memory)
            rebuild.pop(memory, None)
        reached.extend(derived[memory])
    return rebuild


def _orphans(going: set[str], sources: dict[str, set[str]], derived: dict[str, set[str]]) -> frozenset[str]:
    """Sources that stay although every summary of them goes."""
    staying = {source for memory in going for source in sources[memory]} - going
    return frozenset(source for source in staying if derived[source] <= going)


def _sources_first(rebuild: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Order summaries so that one made from another comes after it."""
    ordered: dict[str, tuple[str, ...]] = {}

    def place(memory: str) -> None:
        if memory in rebuild and memory not in ordered:
            for source in rebuild[memory]:
                place(source)
            ordered[memory] = rebuild[memory]

    for memory in sorted(rebuild):
        place(memory)
    return ordered
