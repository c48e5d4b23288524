"""Changes to a request on its way to a provider: its head, single fields of its body, its images, its tools."""
