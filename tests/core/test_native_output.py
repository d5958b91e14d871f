"""What C code prints stays away from standard output, and everything before and after it arrives."""

import subprocess
import sys

PROGRAM = """
import ctypes, os
from opmark.core.native_output import native_output_discarded
c = ctypes.CDLL(None)
c.puts(b"before")
try:
    with native_output_discarded():
        c.puts(b"a solver's line")
        os.write(1, b"past every buffer\\n")
        raise ValueError
except ValueError:
    c.puts(b"after")
c.fflush(None)
print("data")
"""


def test_only_lines_within_the_block_are_lost() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.split("\n") == ["before", "after", "data", ""]


def test_a_closed_output_is_no_error() -> None:
    program = "import os\nfrom opmark.core.native_output import native_output_discarded\nos.close(1)\n"
    program += "with native_output_discarded(): os.close(2)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (0, "")
