"""Which target is asked, and what comes next when it fails: decisions without I/O."""
