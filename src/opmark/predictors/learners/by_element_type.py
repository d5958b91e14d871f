"""A model for each element type that a kind has many rows of, and one for the others together.

A runtime computes in bfloat16 or 8 bits with other code than in float32, four times as fast or slower than the
bytes say. Learned together, a kernel gets something between both where its own type has few neighbours (decision 0015).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from opmark.predictors.inputs.arrays import Floats, Integers, from_text, to_text
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.learners.estimator import Fitted, Latencies

# Fewer rows than this of one type learn more from those of other types than they lose by them.
_ENOUGH_ROWS = 60
_OTHERS = -2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ByElementType(Fitted):
    """`models` by the code of an element type; those without one are predicted by the model of `others`."""

    models: Mapping[int, Fitted]
    others: int
    made_without: Latencies | None = None

    def predict(self, inputs: Inputs) -> Latencies:
        """Both labels, each kernel by the model of its type."""
        codes = self._assigned(inputs)
        return joined(codes, {code: self.models[code].predict(inputs.take(codes == code)) for code in set(codes)})

    def files(self) -> dict[str, str]:
        """Those of every model, its code before each name, and whose are the other types."""
        found = {"others.json": to_text({"code": self.others})}
        return found | {
            f"{code}.{name}": text for code, model in self.models.items() for name, text in model.files().items()
        }

    @property
    def held_out(self) -> Latencies | None:
        """Predictions of the training rows without their own shape group."""
        return self.made_without

    def _assigned(self, inputs: Inputs) -> Integers:
        codes = element_types(inputs)
        return np.where(np.isin(codes, list(self.models)), codes, self.others)


def element_types(inputs: Inputs) -> Integers:
    """The code of each kernel's element type."""
    codes: Integers = inputs.matrix[:, inputs.names.index("dtype_code")].astype(np.int64)
    return codes


def fit_by_element_type(inputs: Inputs, labels: Latencies, fit: Callable[[Inputs, Latencies], Fitted]) -> Fitted:
    """`fit` on the rows of each common element type; of all rows at once where there is but one type."""
    codes = element_types(inputs)
    known, counts = np.unique(codes, return_counts=True)
    common = [int(code) for code, count in zip(known, counts, strict=True) if count >= _ENOUGH_ROWS]
    if len(known) == 1 or not common:
        return fit(inputs, labels)
    groups = {code: codes == code for code in common}
    if len(common) < len(known):
        # the few learn from everything there is
        groups[_OTHERS] = np.ones(len(codes), dtype=bool)
    models = {code: fit(inputs.take(rows), taken(labels, rows)) for code, rows in groups.items()}
    assigned = np.where(np.isin(codes, common), codes, _OTHERS)
    without = {
        code: taken(model.held_out, assigned[groups[code]] == code)
        for code, model in models.items()
        if model.held_out is not None
    }
    others = _OTHERS if _OTHERS in models else int(known[np.argmax(counts)])
    made_without = joined(assigned, without) if len(without) == len(models) else None
    return ByElementType(models=models, others=others, made_without=made_without)


def restore_by_element_type(files: Mapping[str, str], restore: Callable[[Mapping[str, str]], Fitted]) -> Fitted:
    """What `Fitted.files` described. Raises `KeyError` or `ValueError` on foreign text."""
    codes = {int(name.partition(".")[0]) for name in files if name.partition(".")[0].lstrip("-").isdigit()}
    if not codes:
        return restore(files)
    models = {
        code: restore({name.partition(".")[2]: text for name, text in files.items() if name.startswith(f"{code}.")})
        for code in sorted(codes)
    }
    return ByElementType(models=models, others=int(from_text(files["others.json"])["code"]))


def taken(labels: Latencies, rows: Floats) -> Latencies:
    """The labels of some rows."""
    return Latencies(hot_ns=labels.hot_ns[rows], rotated_ns=labels.rotated_ns[rows])


def joined(codes: Integers, parts: Mapping[int, Latencies]) -> Latencies:
    """Latencies of all rows from those of each code's, which every code needs."""
    hot_ns, rotated_ns = np.empty(len(codes)), np.empty(len(codes))
    for code, part in parts.items():
        rows = codes == code
        hot_ns[rows], rotated_ns[rows] = part.hot_ns, part.rotated_ns
    return Latencies(hot_ns=hot_ns, rotated_ns=rotated_ns)
