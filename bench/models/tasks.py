"""What the models are asked: twenty requests with one right call each, and ten that need no tool.

Three tools are offered at a time. Requests that share their tools stand together, so that a server which keeps what it
has read of a prompt reads the tools once.
"""

from __future__ import annotations

from dataclasses import dataclass

from dragoman import Tool
from dragoman.inputs.conversation import read_tools

Values = dict[str, object]


@dataclass(frozen=True)
class Task:
    """A request. `name` None: no tool is needed, and every call is wrong."""

    prompt: str
    tools: tuple[Tool, ...]
    name: str | None = None
    arguments: Values | None = None


def tool(name: str, description: str, **properties: dict[str, object]) -> dict[str, object]:
    """A tool all of whose parameters are required."""
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": description, "input_schema": schema}


def text(description: str, **more: object) -> dict[str, object]:
    return {"type": "string", "description": description, **more}


def number(description: str, kind: str = "integer") -> dict[str, object]:
    return {"type": kind, "description": description}


ROOM = text("Which room.", enum=["kitchen", "bedroom", "bathroom"])

#: Three tools, and what is asked of them: prompt → tool and arguments, or None.
SETS: list[tuple[list[dict[str, object]], dict[str, tuple[str, Values] | None]]] = [
    (
        [
            tool("get_weather", "Current weather of a city.", city=text("The city's name.")),
            tool("set_timer", "Start a timer.", minutes=number("How long, in minutes.")),
            tool("play_song", "Play a song.", title=text("The song's title.")),
        ],
        {
            "What is the weather in Paris?": ("get_weather", {"city": "Paris"}),
            "Set a timer for 10 minutes.": ("set_timer", {"minutes": 10}),
            "Play the song Yesterday.": ("play_song", {"title": "Yesterday"}),
            "Is it raining in Tokyo right now?": ("get_weather", {"city": "Tokyo"}),
            "Hello!": None,
            "What is the capital of France?": None,
        },
    ),
    (
        [
            tool("multiply", "Multiply two numbers.", a=number("The first."), b=number("The second.")),
            tool("add", "Add two numbers.", a=number("The first."), b=number("The second.")),
            tool("square_root", "Square root of a number.", x=number("The number.", "number")),
        ],
        {
            "Add 2 and 3.": ("add", {"a": 2, "b": 3}),
            "What is 12 times 4?": ("multiply", {"a": 12, "b": 4}),
            "What is the square root of 144?": ("square_root", {"x": 144}),
            "Please compute 17 plus 25.": ("add", {"a": 17, "b": 25}),
            "Thank you, that was all.": None,
            "Who wrote Hamlet?": None,
        },
    ),
    (
        [
            tool("delete_file", "Delete a file.", path=text("The file's path.")),
            tool("read_file", "Read a file.", path=text("The file's path.")),
            tool("write_file", "Write a file.", path=text("The file's path."), content=text("What it shall hold.")),
        ],
        {
            "Read the file notes.txt.": ("read_file", {"path": "notes.txt"}),
            "Delete old.log, I do not need it any more.": ("delete_file", {"path": "old.log"}),
            "What does src/main.py say?": ("read_file", {"path": "src/main.py"}),
            "Write the word hello into a.txt.": ("write_file", {"path": "a.txt", "content": "hello"}),
            "Good morning. How are you?": None,
            "What does the word file mean?": None,
        },
    ),
    (
        [
            tool("light_on", "Turn the light of a room on.", room=ROOM),
            tool("light_off", "Turn the light of a room off.", room=ROOM),
            tool("set_temperature", "Set the heating.", room=ROOM, degrees=number("Degrees Celsius.")),
        ],
        {
            "Turn on the light in the kitchen.": ("light_on", {"room": "kitchen"}),
            "Turn off the bedroom light.": ("light_off", {"room": "bedroom"}),
            "Heat the bathroom to 22 degrees.": ("set_temperature", {"room": "bathroom", "degrees": 22}),
            "It is too dark in the bedroom, put the light on.": ("light_on", {"room": "bedroom"}),
            "Tell me a short joke.": None,
            "How many days has a week?": None,
        },
    ),
    (
        [
            tool("send_message", "Send a message to a person.", to=text("Who."), text=text("What to say.")),
            tool("search_web", "Search the web.", query=text("What to look for.")),
            tool("translate", "Translate a word.", word=text("The word."), language=text("Into which language.")),
        ],
        {
            "Search the web for cheap flights.": ("search_web", {"query": "cheap flights"}),
            "Translate the word dog into Spanish.": ("translate", {"word": "dog", "language": "Spanish"}),
            "Send Anna the message: I am late.": ("send_message", {"to": "Anna", "text": "I am late"}),
            "What is the German word for house?": ("translate", {"word": "house", "language": "German"}),
            "Goodbye!": None,
            "Write one sentence about the sea.": None,
        },
    ),
]

TASKS: list[Task] = [
    Task(prompt, read_tools(tools)[0], *(wanted or ())) for tools, asked in SETS for prompt, wanted in asked.items()
]
