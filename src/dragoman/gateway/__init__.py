"""`dragoman serve`: clients of five protocols on one port, in front of providers of any of the five.

`server` has the sockets, `app` the front door, `pages` what clients ask before they chat, `relay` one request from its
parsing to its last byte, `process` the process.
"""
