"""Resources of light tasks next to actor pools."""

from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.runtime.resources import (
    CONCURRENT_LIGHT_TASKS,
    LIGHT_CPUS,
    MIN_LIGHT_CPUS,
    choose_light_cpus,
    compute_needed_resources,
    sum_min_pool_cpus,
)
from ragassay.pipeline.engines.replicas import Replicas
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.stages.slm_served import ServedSlmStage
from ragassay.pipeline.stages.stage import Stage

POOLS = st.lists(
    st.builds(
        lambda least, more, cpus: ServedSlmStage(
            Slm(name="slm", replicas=Replicas(min=least, max=least + more, num_cpus=cpus))
        ),
        st.integers(1, 4),
        st.integers(0, 4),
        st.sampled_from([0.5, 1, 2]),
    ),
    max_size=3,
)


@given(POOLS, st.floats(0, 64))
def test_a_plan_with_the_needed_resources_never_waits_for_itself(stages: list[Stage], more: float) -> None:
    cpus = compute_needed_resources(stages)[0] + more
    max_pool_cpus = sum(stage.replicas.max * stage.replicas.num_cpus for stage in stages if stage.replicas)
    assert CONCURRENT_LIGHT_TASKS * choose_light_cpus(cpus - max_pool_cpus) <= cpus - sum_min_pool_cpus(stages)


def test_light_tasks_take_less_on_a_small_machine() -> None:
    """Therefore a machine with two CPUs is enough for a job with one SLM."""
    slm = ServedSlmStage(Slm(name="slm", replicas=Replicas(num_cpus=1)))
    assert compute_needed_resources([slm]) == (2, 0)
    assert (choose_light_cpus(2), choose_light_cpus(1)) == (LIGHT_CPUS, MIN_LIGHT_CPUS)
