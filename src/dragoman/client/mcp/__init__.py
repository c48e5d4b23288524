"""Servers of the Model Context Protocol: reached, asked for their tools, their results read."""
