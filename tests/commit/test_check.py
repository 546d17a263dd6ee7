"""Reports against what was planned."""

from __future__ import annotations

import pytest

from lading.commit.check import check_reports
from lading.errors import StageError
from lading.model.batch import BatchPlan, Report, Split
from lading.model.positions import PartitionState, Positions

PLAN = BatchPlan(
    positions=Positions(partitions={"0": PartitionState(at="10")}),
    splits=(Split(number=0, partition="0", start="10", end="50", may_end_early=True),),
)


@pytest.mark.parametrize("end", ["10", "11", "50"])
def test_a_range_may_be_cut_off_by_a_limit(end: str) -> None:
    assert check_reports(PLAN, [Report(split=0, partition="0", start="10", end=end)])


@pytest.mark.parametrize("end", ["9", "51", "500"])
def test_no_report_ends_outside_of_its_range(end: str) -> None:
    with pytest.raises(StageError, match="ends outside of the planned range"):
        check_reports(PLAN, [Report(split=0, partition="0", start="10", end=end)])
