"""Predictors made from few samples and the predictor of another device."""
