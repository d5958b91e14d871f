"""Problems, the simulator, and standings."""

from pathlib import Path

from opmark.leaderboards.problem.compile_cache import settle_compile_cache

settle_compile_cache(Path(__file__).parent)
