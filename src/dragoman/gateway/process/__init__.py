"""The process of `dragoman serve`: listeners, workers, signals, the watched configuration."""
