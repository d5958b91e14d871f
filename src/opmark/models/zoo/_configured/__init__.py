"""Families that are entries of a table: to add one, add an entry to `images` or `text`."""

from opmark.models.zoo._configured.images import IMAGES
from opmark.models.zoo._configured.text import TEXT

CONFIGURED = (*IMAGES, *TEXT)
