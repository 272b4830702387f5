"""Where the time of a model goes, kernel by kernel, and how that compares with another trace."""
