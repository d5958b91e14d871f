"""Networks executed in parts by several processes of one machine."""
