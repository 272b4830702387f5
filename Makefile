# Placeholder targets are filled by the set-up room; see README.
