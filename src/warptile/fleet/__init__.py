"""A shelf of cards: fleet tuning on Ray. `tune_fleet` is its door."""
