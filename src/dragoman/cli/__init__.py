"""The command line: `main` picks a command, one file each; a command's module is imported only when it runs."""
