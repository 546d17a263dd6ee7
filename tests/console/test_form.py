"""The form for positions, without a browser."""

from __future__ import annotations

from nicegui import ui
from nicegui.client import Client
from nicegui.page import page

from lading.console.position_form import MOST_PARTITIONS, PositionForm
from lading.service.views.records import PartitionView


def parts(count: int, at: str = "5") -> list[PartitionView]:
    return [PartitionView(partition=f"shard-{number}", at=at, finished=number == 0) for number in range(count)]


def fields(client: Client) -> dict[str, ui.input]:
    found = {element.props.get("aria-label"): element for element in client.elements.values()}
    return {str(name): element for name, element in found.items() if name and isinstance(element, ui.input)}


def test_partitions_that_are_not_shown_are_counted_found_and_keep_what_was_typed() -> None:
    with Client(page(""), request=None) as client:
        form = PositionForm(now="now at", on_change=lambda: None)
        form.fill(parts(491))
        assert len(fields(client)) == MOST_PARTITIONS
        assert any(getattr(found, "text", "") == "200 of 490 are shown." for found in client.elements.values())
        fields(client)["New position of shard-3"].set_value("7")
        search = next(found for found in client.elements.values() if found.props.get("label") == "Filter partitions")
        assert isinstance(search, ui.input)
        search.set_value("SHARD-49")
        assert sorted(fields(client)) == [f"New position of shard-{name}" for name in ("3", "49", "490")]
        fields(client)["New position of shard-490"].set_value(" 8 ")
        assert form.wanted == {"shard-3": "7", "shard-490": "8"}


def test_the_form_follows_the_job() -> None:
    with Client(page(""), request=None) as client:
        form = PositionForm(now="now at", on_change=lambda: None)
        form.fill(parts(3))
        fields(client)["New position of shard-1"].set_value("7")
        assert not form.follow(parts(3))
        assert form.follow(parts(3, at="6"))
        assert any(getattr(found, "text", "") == "now at 6" for found in client.elements.values())
        assert form.follow(parts(2, at="6"))
        assert form.wanted == {"shard-1": "7"}
        assert list(fields(client)) == ["New position of shard-1"]
