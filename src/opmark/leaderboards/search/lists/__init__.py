"""List scheduling: units placed one by one, in a given sequence or by earliest start."""
