"""Turn tool calls that a model wrote as text into the events of structured ones, and remove their markup from the text.

Each family is one small file; `families.FAMILIES` lists them. A family with a marker is live: its call opens as soon as
its name is known to be offered. One without (`where="message"`) is held until the message shows that it is nothing
else. Calls in thinking are held until the response shows that no answer follows. Text waits only while it may still
become a marker.
"""
