"""Compare two journals of one suite: the samples as measured, and told at the machine's usual state.

Measure the second journal at another time (`opmark bench retest SUITE` does). If the host's state differs then, the
labels as measured differ too.

    python benchmarks/clock.py FIRST.jsonl AGAIN.jsonl
"""

import argparse
import math
from pathlib import Path

from opmark.core.measurements.estimate import median, quantile
from opmark.core.measurements.journal import Journal, read_journal, usual_of


def labels(journal: Journal, label: str) -> dict[tuple[str, str], float]:
    """The label of every kernel, in ns, by target and kernel."""
    found = {(row.target, row.kernel.key): getattr(row, label) for row in journal.measurements}
    return {key: ns for key, ns in found.items() if ns is not None}


def show(title: str, first: Journal, again: Journal) -> None:
    """Print the differences between both journals' labels as a table."""
    for label in ("latency_hot_ns", "latency_rotated_ns"):
        before, after = labels(first, label), labels(again, label)
        errors = [math.log(after[key] / before[key]) for key in before.keys() & after.keys()]
        if errors:
            sizes = [abs(error) for error in errors]
            print(
                f"{title:<20} {label:<20} {len(errors):>5} kernels   signed median {median(errors):+7.2%}   "
                f"median {median(sizes):6.2%}   95 % within {quantile(sizes, 0.95):6.2%}"
            )


def main() -> None:
    """Read both journals and print both comparisons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=Path)
    parser.add_argument("again", type=Path)
    arguments = parser.parse_args()
    journals = [read_journal(arguments.first), read_journal(arguments.again)]
    usual_ns = usual_of(journals)
    first, again = (journal.beside(usual_ns) for journal in journals)
    show("as taken", *(journal.beside({}) for journal in journals))
    show("at the usual state", first, again)


if __name__ == "__main__":
    main()
