"""Results of tools that a provider runs: pages, files and calls of other servers, and citations of them."""
