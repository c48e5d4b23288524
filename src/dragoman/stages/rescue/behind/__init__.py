"""Judge the text behind a call that its own brackets, or its tag, closed."""
