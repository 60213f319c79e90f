"""What users have written down, in any of its forms, turned into settings of flows. Reads files, opens no connection."""
