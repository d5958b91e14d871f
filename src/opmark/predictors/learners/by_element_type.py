"""A model for each common element type of a kind's kernels.

A runtime computes in bfloat16 or 8 bits with other code than in float32, four times as fast or slower than the bytes
suggest. Learned together, a kernel whose own type has few neighbours gets a latency in between (decision 0015).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from opmark.predictors.inputs.arrays import Flags, Integers, from_text, to_text
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.inputs.shape_groups import shape_groups
from opmark.predictors.inputs.switches import element_types
from opmark.predictors.inputs.tables import Latencies
from opmark.predictors.learners.estimator import Fitted

Fit = Callable[[Inputs, Latencies], Fitted]
Restore = Callable[[Mapping[str, str]], Fitted]

# An element type with fewer rows learns more from rows of other types than it loses by them.
_ENOUGH_ROWS_OF_TYPE = 60
_OTHERS = -2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ByElementType(Fitted):
    """A model for each common element type, by its code; the model `others` predicts all other types."""

    models: Mapping[int, Fitted]
    others: int
    held_out: Latencies | None = None

    def predict(self, inputs: Inputs) -> Latencies:
        """Predict both labels of each kernel with the model of its type."""
        codes = element_types(inputs)
        models = np.where(np.isin(codes, list(self.models)), codes, self.others)
        parts = {code: self.models[code].predict(inputs.take(models == code)) for code in set(models)}
        return joined(models, parts)

    def files(self) -> dict[str, str]:
        """Write the files of every model, with the type in front of each name, and which one predicts other types."""
        own = {f"{code}.{name}": text for code, model in self.models.items() for name, text in model.files().items()}
        return {"others.json": to_text({"code": self.others})} | own


def fit_by_element_type(inputs: Inputs, labels: Latencies, fit: Fit) -> Fitted:
    """Call `fit` on the rows of each common element type, or once where there is only one type."""
    codes = element_types(inputs)
    known, counts = np.unique(codes, return_counts=True)
    common = [int(code) for code, count in zip(known, counts, strict=True) if count >= _ENOUGH_ROWS_OF_TYPE]
    if len(known) == 1 or not common:
        return fit(inputs, labels)
    groups = {code: codes == code for code in common}
    if len(common) < len(known):
        # rare types learn from all rows
        groups[_OTHERS] = np.ones(len(codes), dtype=bool)
    models = {code: fit(inputs.take(rows), labels.take(rows)) for code, rows in groups.items()}
    assigned = np.where(np.isin(codes, common), codes, _OTHERS)
    held_out = {
        code: _without_own_group(fit, inputs, labels, groups[code], model.held_out).take(assigned[groups[code]] == code)
        for code, model in models.items()
        if model.held_out is not None
    }
    return ByElementType(
        models=models,
        others=_OTHERS if _OTHERS in models else int(known[np.argmax(counts)]),
        held_out=joined(assigned, held_out) if len(held_out) == len(models) else None,
    )


def _without_own_group(fit: Fit, inputs: Inputs, labels: Latencies, own: Flags, held_out: Latencies) -> Latencies:
    """The predictions `held_out` of the rows `own`, or those of all other rows where `own` is a single shape group.

    Within a single group, rows were dealt out one by one: each was predicted from its siblings.
    """
    alone = inputs.take(own)
    if own.all() or len(set(shape_groups(alone.kernels))) > 1:
        return held_out
    return fit(inputs.take(~own), labels.take(~own)).predict(alone)


def restore_by_element_type(files: Mapping[str, str], restore: Restore) -> Fitted:
    """Read what `fit_by_element_type` made. Raises `KeyError` or `ValueError` on foreign text."""
    codes = {int(name.partition(".")[0]) for name in files if name.partition(".")[0].lstrip("-").isdigit()}
    if not codes:
        return restore(files)
    models = {code: restore(starting_with(files, f"{code}.")) for code in sorted(codes)}
    return ByElementType(models=models, others=int(from_text(files["others.json"])["code"]))


def starting_with(files: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Select the files whose name starts with `prefix`, and remove it."""
    return {name.removeprefix(prefix): text for name, text in files.items() if name.startswith(prefix)}


def joined(groups: Integers, parts: Mapping[int, Latencies]) -> Latencies:
    """Put the latencies of all groups in the order of the rows."""
    hot_ns, rotated_ns = np.empty(len(groups)), np.empty(len(groups))
    for group, part in parts.items():
        rows = groups == group
        hot_ns[rows], rotated_ns[rows] = part.hot_ns, part.rotated_ns
    return Latencies(hot_ns=hot_ns, rotated_ns=rotated_ns)
