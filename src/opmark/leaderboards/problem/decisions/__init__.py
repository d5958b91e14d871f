"""Decisions of a solution that change the problem: it is simulated on the problem that they lead to."""
