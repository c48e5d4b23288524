"""Record exchanges with a provider, without their secrets, in the form of the corpus, and replay them."""
