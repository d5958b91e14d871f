"""Everything a site shows: the boards of its tracks, and the predictors their costs come from."""

from dataclasses import dataclass

from opmark.leaderboards.site.board import Board, Instance, Machine
from opmark.leaderboards.site.predictor_card import PredictorCard


@dataclass(frozen=True, slots=True, kw_only=True)
class Showcase:
    """The whole site, before it is drawn."""

    boards: tuple[Board, ...]
    predictors: tuple[PredictorCard, ...] = ()

    def device_types(self) -> tuple[str, ...]:
        """Every type of device that an instance uses or a predictor knows."""
        used = {machine.type for _, _, machine in self.machines()}
        return tuple(sorted(used | {card.device for card in self.predictors}))

    def machines(self) -> list[tuple[Board, Instance, Machine]]:
        """Every device of every instance."""
        return [
            (board, instance, machine)
            for board in self.boards
            for instance in board.instances
            for machine in instance.machines
        ]

    def predictor_of(self, machine: Machine) -> PredictorCard | None:
        """The predictor whose id stands in the problem's provenance; else the newest of the device and target there."""
        words = machine.bundle.split()
        own = [card for card in self.predictors if is_build(card, machine)]
        later = [card for card in self.predictors if f"{card.device}/{card.target}" in words]
        found = own or later
        return found[-1] if found else None

    def provenance(self) -> dict[str, tuple[str, ...]]:
        """Where the costs of each type of device come from; nothing for a type that no instance uses."""
        found: dict[str, set[str]] = {name: set() for name in self.device_types()}
        for _, _, machine in self.machines():
            found[machine.type].add(machine.provenance)
        return {name: tuple(sorted(words)) for name, words in found.items()}


def is_build(card: PredictorCard, machine: Machine) -> bool:
    """Whether the costs of a machine come from this very build of a predictor."""
    return bool(card.id) and card.id in machine.bundle.split()
