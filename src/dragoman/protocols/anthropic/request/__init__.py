"""Parse the client's requests and render our own."""
