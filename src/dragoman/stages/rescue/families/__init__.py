"""One file per family of calls that models write as text."""
