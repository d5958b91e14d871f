"""Full pipelines as divisions of groups over stages, and the bound that follows from their loads."""
