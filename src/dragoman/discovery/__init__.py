"""Find out which models there are and what they can do, from servers, catalogue and proofs."""
