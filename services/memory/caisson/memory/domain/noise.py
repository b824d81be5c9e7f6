"""Telling noise from a memory: refusals, small talk, and what tools print when nothing happened.

Invariant: only a text that is noise as a whole is called so; a fact beside a pleasantry is kept.
"""

import re
import unicodedata

_MAX_REFUSAL_CHARS = 600
_MAX_SMALL_TALK_WORDS = 12
_MAX_SMALL_TALK_CHARS = 200
_MAX_NOISE_LINE_CHARS = 300

_REFUSAL = re.compile(
    r"""^\W*(?:
        (?:i['’]?m|i\s+am)\s+(?:very\s+|so\s+)?(?:sorry|afraid)\b.{0,80}?
        \b(?:can['’]?t|cannot|can\s+not|unable|won['’]?t)\b
      | (?:sorry|unfortunately|apologies)\b.{0,40}?
        \b(?:i|we)\s+(?:can['’]?t|cannot|am\s+unable|won['’]?t|don['’]?t\s+have)\b
      | as\s+an?\s+(?:ai|artificial\s+intelligence|large\s+language)\b
      | i\s+(?:can['’]?t|cannot|can\s+not|won['’]?t|am\s+not\s+able\s+to|am\s+unable\s+to)\s+
        (?:help|assist|comply|do\s+that|answer|provide|fulfil|discuss|continue|access|share)\b
      | i\s+(?:do\s+not|don['’]?t)\s+(?:have|know|remember)\s+(?:access|any|enough|that|the|what|who)\b
      | no\s+(?:relevant\s+)?(?:memories|information|results)\s+(?:were\s+|was\s+)?(?:found|available)\b
    )""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_SMALL_TALK_WORDS = """
    ok okay k kk thanks thank thx ty you u very much so hi hello hey hiya bye goodbye good morning evening night day
    afternoon great nice cool awesome perfect excellent sure yes yep yeah no nope got it understood alright right
    fine done welcome you're youre please sounds lol haha hm hmm oh ah wow cheers see later there then well and
    danke bitte ja nein hallo merci bonjour oui non gracias hola si por favor grazie ciao obrigado oi spasibo
    спасибо да нет привет хорошо ок 谢谢 你好 好的 好 ありがとう はい こんにちは 감사합니다 네
"""
_SMALL_TALK = frozenset(_SMALL_TALK_WORDS.split())
_NOISE_LINE = re.compile(
    r"""^\s*(?:
        (?:process\s+(?:finished|exited)\s+with\s+)?(?:exit|return|status)\s*(?:code|status)?\s*[:=]?\s*\d+\.?
      | (?:command|process|task|job|tool|script)\s+(?:completed|finished|succeeded|executed|exited|ran)
        (?:\s+successfully)?\W*
      | (?:done|success|successful|ok|true|false|null|none|nil|undefined|nan|n/?a
        |error|failed|empty|\(empty\)|no\s+output)\W*
      | [\[\](){}<>"',:;\s|+=*_~.\-]+
      | \{\s*"?(?:status|ok|success|result|code|error|message)"?\s*
        :\s*"?(?:ok|success|true|false|null|done|\d+)"?\s*\}
      | [\w ./:-]{0,40}?\d{1,3}\s*%\s*\|?\[?[█▉▊▋▌▍▎▏▒░\#=>.\-]{3}[^a-z]*.{0,40}
      | (?:npm|yarn|pnpm)\s+(?:warn|notice|verb|http)\b.*
      | \[(?:debug|trace)\].*
      | traceback\s+\(most\s+recent\s+call\s+last\):?
      | \s*file\s+"[^"]*",\s+line\s+\d+.*
      | \s*at\s+[\w.$<>\[\] ]+\([^)]*:\d+(?::\d+)?\)
      | total\s+\d+
      | [d\-l](?:[r\-][w\-][xsS\-]){3}[.+@]?\s.*
      | \d+\s+(?:files?|rows?|lines?|bytes)\s+(?:changed|affected|copied|written|read)\b.*
    )\s*$""",
    re.IGNORECASE | re.VERBOSE,
)
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07?")


def is_printable(text: str) -> bool:
    """Whether a text has a letter, a digit or a symbol, and no control characters but white space."""
    meaningful = any(unicodedata.category(char)[0] in "LNS" for char in text)
    return meaningful and not any(unicodedata.category(char) in {"Cc", "Cs", "Co"} for char in _plain(text))


def is_refusal(text: str) -> bool:
    """Whether a text is a model's refusal or its admission that it knows nothing."""
    return len(text) <= _MAX_REFUSAL_CHARS and _REFUSAL.search(text) is not None


def is_small_talk(text: str) -> bool:
    """Whether a text is nothing but pleasantries and acknowledgements."""
    if len(text) > _MAX_SMALL_TALK_CHARS:
        return False
    words = re.findall(r"[\w'’]+", text.casefold())
    if not words:
        return True
    return len(words) <= _MAX_SMALL_TALK_WORDS and all(word.replace("’", "'") in _SMALL_TALK for word in words)


def is_tool_noise(text: str) -> bool:
    """Whether every line of a text is what tools print when nothing happened."""
    lines = [line for line in _ANSI.sub("", text).splitlines() if line.strip()]
    return bool(lines) and all(len(line) <= _MAX_NOISE_LINE_CHARS and _NOISE_LINE.match(line) for line in lines)


def _plain(text: str) -> str:
    return _ANSI.sub("", text).translate({ord("\n"): None, ord("\t"): None, ord("\r"): None})
