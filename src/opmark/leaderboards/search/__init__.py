"""Search for placements. Read it from the bottom to the top.

`groups` and `regions` say what may move, `moves` draws moves. `schedules` (and the simulator's `load_tracker`) judge a
candidate, `annealing_loop` takes or leaves it, `annealing` runs the loop from a state of `states`. `portfolio` starts
several kinds of runs, and `incumbent` keeps the best answer. `lists` and `cuts` hold list scheduling and contiguous
splits, which give the search its starts.
"""
