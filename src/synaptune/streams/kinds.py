"""The usual kinds of streams; each is only a choice of schedule and arrangement, so they combine freely."""

from __future__ import annotations

from collections.abc import Sequence

from synaptune.errors import OptionError
from synaptune.streams.arrangement import Arrangement, Correlated, InOrder, LabelShift, Shuffled
from synaptune.streams.clock import Clock, Waiting
from synaptune.streams.domain import Domain, Domains, as_domains
from synaptune.streams.schedule import Schedule, Visit
from synaptune.streams.stream import Stream

__all__ = ["correlated", "gradual", "iid", "label_shift", "mixed", "one_by_one", "recurring"]


def iid(
    domain: Domains, *, shuffle: bool = True, batch: int = 128, clock: Clock | None = None, seed: int = 0
) -> Stream:
    """One domain, images in random order.

    Args:
        domain: a data set or a domain.
        shuffle: False keeps the order of the set.
        batch: images per batch.
        clock: whether the stream waits.
        seed: of the order.

    >>> from synaptune.data import sample
    >>> print(iid(sample(100), batch=64))
    i.i.d. of 100 images: cifar10-sample; Shuffled, batch 64, seed 0
    """
    domains = as_domains(domain)
    if len(domains) > 1:
        raise OptionError("an i.i.d. stream has one domain; use one_by_one, mixed or recurring for several")
    return _stream("i.i.d.", domains, _in_turn(domains), _order(shuffle), batch, clock, seed)


def one_by_one(
    domains: Domains,
    *,
    reset: bool = True,
    shuffle: bool = False,
    batch: int = 128,
    clock: Clock | None = None,
    seed: int = 0,
) -> Stream:
    """One domain after the other: the protocol of the published tables.

    Args:
        domains: in the order in which they come.
        reset: True marks the beginning of each domain as a reset; False is the continual protocol.
        shuffle: random order inside each domain; the tables have the order of the set.
        batch: images per batch; every domain keeps its last partial one.
        clock: whether the stream waits.
        seed: of the order.
    """
    chosen = as_domains(domains)
    kind = "one by one, reset" if reset else "one by one, continual"
    return _stream(kind, chosen, _in_turn(chosen, reset=reset), _order(shuffle), batch, clock, seed)


def gradual(
    domains: Domains,
    *,
    reset: bool = False,
    shuffle: bool = False,
    batch: int = 128,
    clock: Clock | None = None,
    seed: int = 0,
) -> Stream:
    """Each corruption grows to its highest severity and fades again: 1 2 3 4 5 4 3 2 1, then the next corruption.

    Args:
        domains: of every corruption at several severities, such as `made(data, severities=range(1, 6))`.
        reset: whether the method starts afresh with each corruption.
        shuffle: random order inside each visit.
        batch: images per batch.
        clock: whether the stream waits.
        seed: of the order.
    """
    chosen = as_domains(domains)
    by_corruption: dict[str, list[tuple[int, int]]] = {}
    for number, domain in enumerate(chosen):
        if domain.corruption is None or domain.severity is None:
            raise OptionError(
                f"a gradual stream needs domains with a corruption and a severity; {domain.name} has none"
            )
        by_corruption.setdefault(domain.corruption, []).append((domain.severity, number))
    visits = []
    for steps in by_corruption.values():
        rising = [number for _, number in sorted(steps)]
        there_and_back = rising + rising[-2::-1]
        visits += [Visit((number,), reset=reset and place == 0) for place, number in enumerate(there_and_back)]
    return _stream("gradual", chosen, Schedule(tuple(visits)), _order(shuffle), batch, clock, seed)


def mixed(domains: Domains, *, batch: int = 128, clock: Clock | None = None, seed: int = 0) -> Stream:
    """All domains at once: every batch holds images of several, in random order.

    Args:
        domains: to be mixed.
        batch: images per batch.
        clock: whether the stream waits.
        seed: of the order.
    """
    chosen = as_domains(domains)
    return _stream("mixed", chosen, _pooled(chosen), Shuffled(), batch, clock, seed)


def correlated(
    domains: Domains,
    *,
    delta: float = 0.1,
    slots: int | None = None,
    mix: bool = False,
    reset: bool = True,
    batch: int = 128,
    clock: Clock | None = None,
    seed: int = 0,
) -> Stream:
    """Labels that stay for a while, by a Dirichlet draw; see `Correlated` for the algorithm.

    Args:
        domains: in the order in which they come.
        delta: small means strongly correlated.
        slots: stretches of time; by default as many as there are classes.
        mix: pool the domains instead of visiting them in turn.
        reset: with `mix=False`, whether each domain begins with a reset.
        batch: images per batch.
        clock: whether the stream waits.
        seed: of the order.
    """
    chosen = as_domains(domains)
    schedule = _pooled(chosen) if mix else _in_turn(chosen, reset=reset)
    return _stream("correlated", chosen, schedule, Correlated(delta=delta, slots=slots), batch, clock, seed)


def label_shift(
    domains: Domains,
    *,
    ratio: float = 10.0,
    prior: Sequence[float] | None = None,
    ranking_seed: int | None = None,
    reset: bool = True,
    batch: int = 128,
    clock: Clock | None = None,
    seed: int = 0,
) -> Stream:
    """Classes are not equally frequent; see `LabelShift` for the rule.

    Args:
        domains: in the order in which they come.
        ratio: frequency of the commonest class over that of the rarest.
        prior: wanted frequency of each class instead.
        ranking_seed: shuffles which class is how frequent.
        reset: whether each domain begins with a reset.
        batch: images per batch.
        clock: whether the stream waits.
        seed: of the choice and the order.
    """
    chosen = as_domains(domains)
    wanted = None if prior is None else tuple(float(frequency) for frequency in prior)
    rule = LabelShift(ratio=float(ratio), prior=wanted, ranking_seed=ranking_seed)
    return _stream("label shift", chosen, _in_turn(chosen, reset=reset), rule, batch, clock, seed)


def recurring(
    domains: Domains,
    *,
    rounds: int = 20,
    shuffle_rounds: bool = False,
    shuffle: bool = True,
    batch: int = 128,
    clock: Clock | None = None,
    seed: int = 0,
) -> Stream:
    """The same domains again and again, without a reset: for tests over a long time.

    Args:
        domains: of one round.
        rounds: how often.
        shuffle_rounds: whether each round has its own order of domains.
        shuffle: random order inside each visit, anew in each round.
        batch: images per batch.
        clock: whether the stream waits.
        seed: of all orders.
    """
    chosen = as_domains(domains)
    visits = _in_turn(chosen).visits
    schedule = Schedule(visits, rounds=rounds, shuffled=shuffle_rounds)
    return _stream("recurring", chosen, schedule, _order(shuffle), batch, clock, seed)


def _stream(
    kind: str,
    domains: tuple[Domain, ...],
    schedule: Schedule,
    arrangement: Arrangement,
    batch: int,
    clock: Clock | None,
    seed: int,
) -> Stream:
    return Stream(
        domains=domains,
        schedule=schedule,
        arrangement=arrangement,
        batch=batch,
        clock=clock or Waiting(),
        seed=seed,
        kind=kind,
    )


def _in_turn(domains: Sequence[Domain], *, reset: bool = False) -> Schedule:
    return Schedule(tuple(Visit((number,), reset=reset) for number in range(len(domains))))


def _pooled(domains: Sequence[Domain]) -> Schedule:
    return Schedule((Visit(tuple(range(len(domains)))),))


def _order(shuffle: bool) -> Arrangement:
    return Shuffled() if shuffle else InOrder()
