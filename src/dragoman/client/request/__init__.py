"""What of a request changes on its way to a provider: its head, single fields of its body, its images, its tools."""
