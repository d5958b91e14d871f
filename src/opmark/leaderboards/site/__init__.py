"""The static site: boards of all tracks, their entries and instances, and the predictors behind the costs."""
