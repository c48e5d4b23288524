"""Commands of the agent: the sandbox around them, and what is put right after them."""
