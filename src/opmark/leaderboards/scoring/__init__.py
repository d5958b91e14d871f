"""Run entries on the problems of a track: answers, scores, standings, hidden instances."""
