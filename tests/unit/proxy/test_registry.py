"""How long a context lives, by a given clock."""

from dataclasses import dataclass

from caisson.common.contexts import RunContext
from caisson.proxy.domain.registry import Registry
from tests.support.proxies import a_context


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


class Bucket:
    """A registry that follows a bucket of which the test is the server."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.registry = Registry(self.clock)
        self.watch()

    def watch(self, *contexts: tuple[int, RunContext], epoch: str = "first") -> None:
        self.registry.begin_snapshot(epoch)
        for revision, context in contexts:
            self.registry.receive(context.request_id, revision, context)
        self.registry.end_snapshot()

    def put(self, revision: int, context: RunContext) -> None:
        self.registry.receive(context.request_id, revision, context)

    def lives(self, context: RunContext) -> bool:
        return self.registry.find(context.request_id) is not None


RUN = a_context(ttl_s=15)


def test_a_value_lives_from_when_it_was_received() -> None:
    bucket = Bucket()
    bucket.put(1, RUN)
    bucket.clock.now += 14.9
    assert bucket.lives(RUN)
    bucket.clock.now += 0.2
    assert not bucket.lives(RUN)


def test_a_newer_value_renews_it_in_place() -> None:
    bucket = Bucket()
    bucket.put(1, RUN)
    caller = bucket.registry.find(RUN.request_id)
    bucket.clock.now += 10
    bucket.put(2, RUN)
    bucket.clock.now += 10
    assert bucket.registry.find(RUN.request_id) is caller
    assert caller is not None
    assert bucket.registry.is_alive(caller)


def test_a_marker_ends_it_at_once_for_whoever_holds_it() -> None:
    bucket = Bucket()
    bucket.put(1, RUN)
    caller = bucket.registry.find(RUN.request_id)
    bucket.registry.receive(RUN.request_id, 2, None)
    assert caller is not None
    assert not bucket.registry.is_alive(caller)
    assert not bucket.lives(RUN)


def test_seeing_the_same_value_again_prolongs_nothing() -> None:
    bucket = Bucket()
    bucket.put(1, RUN)
    bucket.clock.now += 10
    bucket.watch((1, RUN))
    bucket.registry.read(RUN.request_id, 1, RUN)
    bucket.clock.now += 6
    assert not bucket.lives(RUN)
    bucket.registry.reap()
    bucket.registry.read(RUN.request_id, 1, RUN)
    bucket.watch((1, RUN))
    assert not bucket.lives(RUN)


def test_a_point_read_may_be_ahead_of_the_watch_and_counts_once() -> None:
    bucket = Bucket()
    bucket.registry.read(RUN.request_id, 7, RUN)
    assert bucket.lives(RUN)
    bucket.clock.now += 10
    bucket.put(7, RUN)
    bucket.clock.now += 6
    assert not bucket.lives(RUN)


def test_a_point_read_that_was_overtaken_by_a_revocation_is_nothing() -> None:
    bucket = Bucket()
    bucket.put(1, RUN)
    bucket.registry.receive(RUN.request_id, 2, None)
    bucket.registry.read(RUN.request_id, 1, RUN)
    assert not bucket.lives(RUN)


def test_what_a_new_watch_does_not_list_has_been_revoked() -> None:
    other = a_context()
    bucket = Bucket()
    bucket.put(1, RUN)
    bucket.put(2, other)
    bucket.watch((2, other))
    assert (bucket.lives(RUN), bucket.lives(other)) == (False, True)


def test_a_wiped_bucket_revokes_nothing_and_its_successors_values_are_newer() -> None:
    bucket = Bucket()
    bucket.put(500, RUN)
    bucket.clock.now += 10
    bucket.watch(epoch="second")
    assert bucket.lives(RUN)
    bucket.put(1, RUN)
    bucket.clock.now += 10
    assert bucket.lives(RUN)
    bucket.registry.receive(RUN.request_id, 2, None)
    assert not bucket.lives(RUN)


def test_what_was_prepared_is_kept_only_while_the_context_says_the_same() -> None:
    bucket = Bucket()
    bucket.put(1, RUN)
    caller = bucket.registry.find(RUN.request_id)
    assert caller is not None
    caller.prepared["x"] = prepared = object()  # type: ignore[assignment]  # only its identity counts
    bucket.put(2, RUN.model_copy(deep=True))
    assert caller.prepared == {"x": prepared}
    bucket.put(3, RUN.model_copy(update={"datasets": ["d"]}))
    assert caller.prepared == {}
