"""A problem's arrays by name inside compiled code, and its decorators. Imported lazily, by compiled code alone."""

import sys
from functools import partial
from typing import Any

from opmark.leaderboards.problem.compile_cache import runs_uncompiled
from opmark.leaderboards.problem.packing import PackedArrays, Sizes

_BLAS = "scipy.linalg.cython_blas"


def _compiler() -> Any:
    """numba's decorator; in plain Python one that leaves functions as they are, because loading numba takes long."""
    if runs_uncompiled():
        return _as_it_is
    _import_array_functions()
    from numba import njit

    return njit


def _as_it_is(given: Any = None, **_: Any) -> Any:
    return given if callable(given) else lambda function: function


def _import_array_functions() -> None:
    """Import numba's functions of arrays without SciPy's BLAS, which only its convolutions would take from there.

    Importing SciPy takes as long as the rest of numba, and numba does so as soon as any compiled function is loaded.
    """
    if _BLAS in sys.modules:
        return
    sys.modules[_BLAS] = None  # type: ignore[assignment]
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        del sys.modules[_BLAS]


_COMPILER = _compiler()

# The decorators of compiled functions. Nothing calls them from C, so they have no entry for it: one takes as long to
# compile as a small function.
compiled: Any = partial(_COMPILER, cache=True, no_cfunc_wrapper=True)
# Functions that allocate nothing do without reference counts: counting the arrays of a tuple whenever one is read takes
# up to ten times as long as the rest.
uncounted: Any = partial(compiled, _nrt=False)
# Functions that compiled code alone calls: they have no entry for Python, which takes longer to compile than they do.
# Calling one from Python ends the process.
internal: Any = partial(uncounted, no_cpython_wrapper=True)


@compiled(inline="always")
def sizes_of(data):  # type: ignore[no-untyped-def]
    """The lengths of all dimensions of the buffer `data`."""
    return Sizes(
        data[0],
        data[1],
        data[2],
        data[3],
        data[4],
        data[5],
        data[6],
        data[7],
        data[8],
        data[9],
        data[10],
        data[11],
    )


@compiled(no_cpython_wrapper=True)
def tables_of(data, starts):  # type: ignore[no-untyped-def]
    """Every array of `FIELDS` behind the sizes, as a view into the buffer `data`."""
    return PackedArrays(
        data[starts[1] : starts[2]],  # exec_ns
        data[starts[2] : starts[3]],  # workspace_bytes
        data[starts[3] : starts[4]],  # input_offsets
        data[starts[4] : starts[5]],  # input_tensors
        data[starts[5] : starts[6]],  # output_offsets
        data[starts[6] : starts[7]],  # output_tensors
        data[starts[7] : starts[8]],  # tensor_bytes
        data[starts[8] : starts[9]],  # tensor_producer
        data[starts[9] : starts[10]],  # tensor_home
        data[starts[10] : starts[11]],  # tensor_output
        data[starts[11] : starts[12]],  # tensor_size_class
        data[starts[12] : starts[13]],  # consumer_offsets
        data[starts[13] : starts[14]],  # consumer_units
        data[starts[14] : starts[15]],  # boundary_ns
        data[starts[15] : starts[16]],  # device_type
        data[starts[16] : starts[17]],  # device_slots
        data[starts[17] : starts[18]],  # device_dispatch_ns
        data[starts[18] : starts[19]],  # device_blocking
        data[starts[19] : starts[20]],  # link_source
        data[starts[20] : starts[21]],  # link_destination
        data[starts[21] : starts[22]],  # link_port
        data[starts[22] : starts[23]],  # route_offsets
        data[starts[23] : starts[24]],  # route_links
        data[starts[24] : starts[25]],  # hop_ns
        data[starts[25] : starts[26]],  # weight_offsets
        data[starts[26] : starts[27]],  # weight_ids
        data[starts[27] : starts[28]],  # weight_bytes
        data[starts[28] : starts[29]],  # link_second_port
        data[starts[29] : starts[30]],  # unit_class
        data[starts[30] : starts[31]],  # interference
        data[starts[31] : starts[32]],  # release_ns
        data[starts[32] : starts[33]],  # request_units
        data[starts[33] : starts[34]],  # request_tensors
        data[starts[34] : starts[35]],  # request_urgency
        data[starts[35] : starts[36]],  # device_copying
    )
