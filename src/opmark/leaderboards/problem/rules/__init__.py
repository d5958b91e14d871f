"""The rules that a problem names: objective, published model, synchronisation, pipeline schedule, arrivals."""
