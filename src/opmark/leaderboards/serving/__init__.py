"""Submissions by HTTP: uploads, their queue, the process that scores them, and the site while it changes."""
