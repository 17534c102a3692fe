"""How far a run is: estimates before all is split, what an earlier run did, rows that are done twice."""

from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.progress.bar import Bar
from ragassay.jobs.runtime.counts import Counts, Phase
from ragassay.jobs.scoring.progress import Course
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.stages.detect import Detect
from ragassay.pipeline.stages.served import ServedScorer
from ragassay.pipeline.stages.split import Split

STAGES = (
    Split(("sentencizer", "en"), False),
    ServedScorer(Slm(name="facts")),
    Detect([], "en", None, 1),
)


def course(rows: int, committed: int = 0) -> Course:
    return Course(STAGES, rows, committed)


def counts(
    split: tuple[int, int], facts: int = 0, detect: int = 0, phase: Phase = Phase.SCORING, tokens: int = 0
) -> list[Counts]:
    of_facts = Counts(phase, sentences=facts, tokens=tokens)
    of_detect = Counts(Phase.SCORING if detect else Phase.LOADING, sentences=detect)
    return [Counts(Phase.SCORING, *split), of_facts, of_detect]


def shown(bars: list[Bar]) -> list[tuple[str, str, int, int | None, bool]]:
    return [(bar.stage, bar.phase, bar.done, bar.total, bar.about) for bar in bars]


def test_before_anything_is_split_the_whole_is_not_known() -> None:
    bars = course(100).bars([Counts(), Counts(), Counts()])
    assert shown(bars) == [("facts", "loading", 0, None, True), ("detect", "waiting", 0, None, True)]


def test_rows_split_so_far_tell_about_the_others() -> None:
    run = course(100)
    bars = run.bars(counts((20, 60), phase=Phase.WARMING_UP))
    assert shown(bars)[0] == ("facts", "warming up", 0, 300, True)
    run.bars(counts((100, 310), phase=Phase.WAITING))
    bars = run.bars(counts((100, 310), facts=31, tokens=930))
    assert shown(bars) == [("facts", "scoring", 31, 310, False), ("detect", "waiting", 0, 310, False)]
    assert (bars[0].worked, bars[0].tokens) == (31, 930)


def test_a_resumed_run_starts_from_what_is_done() -> None:
    run = course(100, committed=40)
    assert shown(run.bars([Counts(), Counts(), Counts()]))[0] == ("facts", "loading", 0, None, True)
    run.bars(counts((30, 90), phase=Phase.WAITING))
    bars = run.bars(counts((60, 180), facts=90))
    assert shown(bars)[0] == ("facts", "scoring", 210, 300, True)
    assert bars[0].worked == 90, "the speed is that of this run"


def test_rows_that_are_done_again_do_not_exceed_the_whole() -> None:
    run = course(10)
    bars = run.bars(counts((14, 42), facts=40, detect=45))
    assert shown(bars) == [("facts", "scoring", 30, 30, False), ("detect", "scoring", 30, 30, False)]


def test_without_a_sentence_all_is_done() -> None:
    run = course(3)
    run.ended = True
    assert shown(run.bars(counts((3, 0)))) == [("facts", "scoring", 0, 0, False), ("detect", "waiting", 0, 0, False)]


def test_at_the_end_all_is_done_whatever_was_counted() -> None:
    run = course(10)
    run.bars(counts((10, 30), facts=20))
    run.ended = True
    bars = run.bars(counts((10, 30), facts=25))
    assert [(bar.done, bar.total) for bar in bars] == [(30, 30)] * 2


steps = st.lists(st.tuples(*[st.integers(0, 50)] * 4), max_size=20)


@given(st.integers(1, 200), st.integers(0, 100), steps)
def test_no_bar_goes_back_or_beyond_its_end(rows: int, committed: int, steps: list[tuple[int, ...]]) -> None:
    run = course(rows, min(rows, committed))
    total, before = [0, 0, 0, 0], [0, 0]
    for step in steps:
        total = [a + b for a, b in zip(total, step, strict=True)]
        bars = run.bars(counts((total[0], total[1]), facts=total[2], detect=total[3]))
        done = [bar.done for bar in bars]
        assert all(now >= then for now, then in zip(done, before, strict=True))
        assert all(bar.total is None or bar.done <= bar.total for bar in bars)
        before = done
