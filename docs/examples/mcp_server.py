"""A small MCP server with one tool. It needs the package `mcp`, which the extras `mcp` and `agent` bring."""

from mcp.server import MCPServer

server = MCPServer("shop")


@server.tool()
def stock(item: str) -> str:
    """Return how many of an item are in stock."""
    return f"{item}: 12 in stock"


if __name__ == "__main__":
    server.run("stdio")
