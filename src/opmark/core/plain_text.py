"""Foreign text made harmless: characters that command a terminal or reorder a line are written as escapes.

Names, licences, answers and messages of other libraries come from files that anybody can write. An escape sequence in
one of them can clear the screen or retitle the window, and a bidirectional override makes a line read otherwise than it
is (CVE-2021-42574).
"""

import re
from urllib.parse import urlsplit

# C0 and C1 controls, DEL, soft hyphen, invisible and bidirectional format characters, separators of lines, tags,
# half characters, and the fillers of Hangul, which look like nothing.
_COMMANDS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_IN_LINES = re.compile(f"[{_COMMANDS}]")
_IN_ONE_LINE = re.compile(f"[\t\n{_COMMANDS}]")
# Colours of a terminal: commands that other libraries put into their messages.
_COLOURS = re.compile("\x1b\\[[0-9;:]*m")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_WEB = frozenset({"http", "https"})


def without_colours(text: str) -> str:
    """Remove the commands from `text` that only colour it; every other one stays for `one_line` to escape."""
    return _COLOURS.sub("", text)


def one_line(text: str) -> str:
    """`text` with every control and format character as an escape such as `\\x1b`, line ends included."""
    return _IN_ONE_LINE.sub(_escape, text)


def lines(text: str) -> str:
    """`text` with every control and format character as an escape, except line ends and tabs."""
    return _IN_LINES.sub(_escape, text)


def json_lines(text: str) -> str:
    """JSON `text` that is safe to print: such characters stand inside its strings only, where JSON has escapes."""
    return _IN_LINES.sub(_json_escape, text)


def web_address(text: str) -> str:
    """`text` if it is an address on the web, else nothing: `javascript:` and its like run code when clicked."""
    try:
        parts = urlsplit(text.strip())
    except ValueError:
        return ""
    safe = parts.scheme.lower() in _WEB and parts.netloc and one_line(text) == text
    return text.strip() if safe else ""


def _escape(found: "re.Match[str]") -> str:
    number = ord(found[0])
    if found[0] in _SHORT:
        return _SHORT[found[0]]
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _json_escape(found: "re.Match[str]") -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place]:02x}{units[place + 1]:02x}" for place in range(0, len(units), 2))
