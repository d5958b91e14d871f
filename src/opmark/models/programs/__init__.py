"""Programs saved by `torch.export.save`: read as data, never unpickled, and rebuilt from operators that are known."""
