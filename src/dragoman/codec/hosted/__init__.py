"""What tools that a provider runs tell: pages, files and calls of other servers, and citations of them."""
