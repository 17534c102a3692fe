"""What light tasks take beside actor pools."""

from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.runtime.dataflow import needed_resources, pool_cpus
from ragassay.jobs.runtime.resources import LEAST_LIGHT_CPUS, LIGHT_AT_ONCE, LIGHT_CPUS, light_cpus
from ragassay.pipeline.slm.config import Replicas, Slm
from ragassay.pipeline.stages.served import ServedScorer
from ragassay.pipeline.stages.stage import Stage

POOLS = st.lists(
    st.builds(
        lambda least, more, cpus: ServedScorer(Slm(name="slm", replicas=Replicas(min=least, max=least + more, num_cpus=cpus))),
        st.integers(1, 4),
        st.integers(0, 4),
        st.sampled_from([0.5, 1, 2]),
    ),
    max_size=3,
)


@given(POOLS, st.floats(0, 64))
def test_a_plan_that_ray_has_room_for_never_waits_for_itself(stages: list[Stage], more: float) -> None:
    cpus = needed_resources(stages)[0] + more
    grown = sum(stage.replicas.max * stage.replicas.num_cpus for stage in stages if stage.replicas)
    assert LIGHT_AT_ONCE * light_cpus(cpus - grown) <= cpus - pool_cpus(stages)


def test_a_job_runs_where_it_ran_before() -> None:
    """Light tasks take less where there is little, so that no machine became too small."""
    slm = ServedScorer(Slm(name="slm", replicas=Replicas(num_cpus=1)))
    assert needed_resources([slm]) == (2, 0)
    assert (light_cpus(2), light_cpus(1)) == (LIGHT_CPUS, LEAST_LIGHT_CPUS)
