"""Reading and building ATen calls, shared by the kinds."""
