"""HTML pages about predictors: their accuracy, learning curves, and transfer to a new device."""
