"""Progress of the stages of a run: estimates before all rows are split, resumed runs, rows that are processed twice."""

from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.progress.bar_state import Bar
from ragassay.jobs.progress.counts import Counts, Phase
from ragassay.jobs.progress.stages import StageProgress
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.stages.detect import DetectStage
from ragassay.pipeline.stages.slm_served import ServedSlmStage
from ragassay.pipeline.stages.split import SplitStage

STAGES = (
    SplitStage(("sentencizer", "en"), False),
    ServedSlmStage(Slm(name="facts")),
    DetectStage([], "en", None, 1),
)


def make_progress(rows: int, committed: int = 0) -> StageProgress:
    return StageProgress(STAGES, rows, committed)


def counts(
    split: tuple[int, int], facts: int = 0, detect: int = 0, phase: Phase = Phase.SCORING, tokens: int = 0
) -> list[Counts]:
    facts_counts = Counts(phase, sentences=facts, tokens=tokens)
    detect_counts = Counts(Phase.SCORING if detect else Phase.LOADING, sentences=detect)
    return [Counts(Phase.SCORING, *split), facts_counts, detect_counts]


def summarize(bars: list[Bar]) -> list[tuple[str, str, int, int | None, bool]]:
    return [(bar.stage, bar.phase, bar.done, bar.total, bar.is_estimate) for bar in bars]


def test_before_any_row_is_split_the_total_is_unknown() -> None:
    bars = make_progress(100).make_bars([Counts(), Counts(), Counts()])
    assert summarize(bars) == [("facts", "loading", 0, None, True), ("detect", "waiting", 0, None, True)]


def test_split_rows_give_an_estimate_of_the_total() -> None:
    run = make_progress(100)
    bars = run.make_bars(counts((20, 60), phase=Phase.WARMING_UP))
    assert summarize(bars)[0] == ("facts", "warming up", 0, 300, True)
    run.make_bars(counts((100, 310), phase=Phase.WAITING))
    bars = run.make_bars(counts((100, 310), facts=31, tokens=930))
    assert summarize(bars) == [("facts", "scoring", 31, 310, False), ("detect", "waiting", 0, 310, False)]
    assert (bars[0].done_here, bars[0].tokens) == (31, 930)


def test_a_resumed_run_starts_at_the_committed_rows() -> None:
    run = make_progress(100, committed=40)
    assert summarize(run.make_bars([Counts(), Counts(), Counts()]))[0] == ("facts", "loading", 0, None, True)
    run.make_bars(counts((30, 90), phase=Phase.WAITING))
    bars = run.make_bars(counts((60, 180), facts=90))
    assert summarize(bars)[0] == ("facts", "scoring", 210, 300, True)
    assert bars[0].done_here == 90, "the speed is that of this run"


def test_rows_that_are_processed_again_do_not_exceed_the_total() -> None:
    run = make_progress(10)
    bars = run.make_bars(counts((14, 42), facts=40, detect=45))
    assert summarize(bars) == [("facts", "scoring", 30, 30, False), ("detect", "scoring", 30, 30, False)]


def test_without_a_sentence_the_bar_is_complete() -> None:
    run = make_progress(3)
    run.is_finished = True
    assert summarize(run.make_bars(counts((3, 0)))) == [("facts", "scoring", 0, 0, False), ("detect", "waiting", 0, 0, False)]


def test_at_the_end_the_bar_is_complete_whatever_the_counts_are() -> None:
    run = make_progress(10)
    run.make_bars(counts((10, 30), facts=20))
    run.is_finished = True
    bars = run.make_bars(counts((10, 30), facts=25))
    assert [(bar.done, bar.total) for bar in bars] == [(30, 30)] * 2


steps = st.lists(st.tuples(*[st.integers(0, 50)] * 4), max_size=20)


@given(st.integers(1, 200), st.integers(0, 100), steps)
def test_no_bar_goes_back_or_exceeds_its_total(rows: int, committed: int, steps: list[tuple[int, ...]]) -> None:
    run = make_progress(rows, min(rows, committed))
    total, before = [0, 0, 0, 0], [0, 0]
    for step in steps:
        total = [a + b for a, b in zip(total, step, strict=True)]
        bars = run.make_bars(counts((total[0], total[1]), facts=total[2], detect=total[3]))
        done = [bar.done for bar in bars]
        assert all(now >= then for now, then in zip(done, before, strict=True))
        assert all(bar.total is None or bar.done <= bar.total for bar in bars)
        before = done
