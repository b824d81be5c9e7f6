"""What one user of a memory service was told, and what must therefore be found after a crash.

What was acknowledged stands, what was deleted stays away, and an answer that never came is all or nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A memory as the store has it, or as a reader is shown it."""

    text: str
    status: str
    layer: str
    attribute: str | None
    is_summary: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """A request whose answer never came: what it may have done.

    `adds`: texts, all of them or none. `rewords`: a memory's id and its new text. `deletes`: an id. `erases`:
    anything of the user may be gone. `summarises`: summaries may have come, each whole.
    """

    adds: tuple[str, ...] = ()
    rewords: tuple[str, str] | None = None
    deletes: str | None = None
    erases: bool = False
    summarises: bool = False


_NOTHING = Unanswered()


@dataclass(kw_only=True)
class Journal:
    """`kept` has the text of every memory that must be there, `marks` the words that only its texts ever had."""

    kept: dict[str, str] = field(default_factory=dict)
    marks: dict[str, set[str]] = field(default_factory=dict)
    episodes: set[str] = field(default_factory=set)
    summaries: set[str] = field(default_factory=set)
    facts: dict[str, str] = field(default_factory=dict)
    ever_facts: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    gone_marks: set[str] = field(default_factory=set)
    unanswered: Unanswered | None = None

    def keep(self, memory_id: str, text: str) -> None:
        """A text was acknowledged, as a new memory or as another wording of one."""
        self.kept[memory_id] = text
        self.marks.setdefault(memory_id, set()).add(mark_of(text))

    def learn(self, attribute: str, memory_id: str) -> None:
        """A fact was acknowledged: it is the one in force."""
        self.facts[attribute] = memory_id
        self.ever_facts.add(memory_id)

    def lose(self, memory_ids: Iterable[str]) -> None:
        """A deletion was acknowledged, or was found to have happened."""
        for memory_id in memory_ids:
            self.kept.pop(memory_id, None)
            self.gone.add(memory_id)
            self.gone_marks |= self.marks.pop(memory_id, set())
            self.episodes.discard(memory_id)
            self.summaries.discard(memory_id)

    def reach(self, memory_id: str) -> set[str]:
        """Return what a deletion of this memory may take with it: of episodes and summaries, what hangs together."""
        graph = self.episodes | self.summaries
        return graph if memory_id in graph else {memory_id}

    def settle(self, views: Mapping[str, Seen]) -> list[str]:
        """Hold what is there against what must be, then take it as what is known; return every lapse."""
        asked = self.unanswered or _NOTHING
        lapses = [f"{id_} returned" for id_ in self.gone & views.keys()]
        lapses += [f"{id_} tells {mark} again" for id_, view in views.items() for mark in self.told(view.text)]
        lapses += self._settle_lost(asked, set(self.kept) - views.keys())
        lapses += self._settle_texts(asked, views)
        lapses += self._settle_new(asked, {id_: view for id_, view in views.items() if id_ not in self.kept})
        lapses += self._settle_facts(asked, views)
        self.unanswered = None
        return lapses

    def told(self, text: str) -> set[str]:
        """Return the deleted words in a text."""
        return self.gone_marks.intersection(text.split())

    def _settle_lost(self, asked: Unanswered, lost: set[str]) -> list[str]:
        may_go = set(self.kept) if asked.erases else set()
        if asked.deletes in lost:
            may_go = self.reach(asked.deletes)
        lapses = [f"{id_} is lost" for id_ in lost - may_go]
        self.lose(lost)
        return lapses

    def _settle_texts(self, asked: Unanswered, views: Mapping[str, Seen]) -> list[str]:
        lapses = []
        for memory_id in self.kept.keys() & views.keys():
            text = views[memory_id].text
            if (memory_id, text) == asked.rewords:
                self.keep(memory_id, text)
            elif text != self.kept[memory_id] and memory_id not in self.summaries:
                lapses.append(f"{memory_id} says {text[:60]!r} instead of {self.kept[memory_id][:60]!r}")
        return lapses

    def _settle_new(self, asked: Unanswered, new: Mapping[str, Seen]) -> list[str]:
        lapses = []
        added = {id_: view for id_, view in new.items() if view.text in asked.adds}
        if added and len(added) != len(asked.adds):
            lapses.append(f"{len(added)} of {len(asked.adds)} texts of one request are there")
        for memory_id, view in added.items():
            self.keep(memory_id, view.text)
            if view.layer == "episodic":
                self.episodes.add(memory_id)
            if view.attribute is not None:
                self.learn(view.attribute, memory_id)
        for memory_id, view in new.items():
            if memory_id not in added and memory_id not in self.gone:
                if asked.summarises and view.is_summary:
                    self.summarise(memory_id, view.text)
                else:
                    lapses.append(f"{memory_id} was never said: {view.text[:60]!r}")
        return lapses

    def summarise(self, memory_id: str, text: str = "") -> None:
        """A summary came; its words are those of its sources."""
        self.kept[memory_id] = text
        self.summaries.add(memory_id)

    def _settle_facts(self, asked: Unanswered, views: Mapping[str, Seen]) -> list[str]:
        """Of each attribute the last acknowledged fact is in force, or the one after it."""
        lapses = []
        for attribute, memory_id in list(self.facts.items()):
            of_it = {id_: view for id_, view in views.items() if view.attribute == attribute}
            open_ = [id_ for id_, view in of_it.items() if view.status != "superseded"]
            if not open_ and memory_id in self.gone:
                del self.facts[attribute]
            elif len(open_) != 1 or (open_[0] != memory_id and views[open_[0]].text not in asked.adds):
                lapses.append(f"of {attribute}, {open_} are in force, last said was {memory_id}")
            else:
                self.facts[attribute] = open_[0]
        return lapses


def mark_of(text: str) -> str:
    """Return the word that no other text has: the first."""
    return text.split(" ", 1)[0]
