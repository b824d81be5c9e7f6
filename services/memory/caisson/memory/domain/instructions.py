"""Telling a text that speaks to a model from one that states something. It is kept as data, with little trust."""

import re

_INSTRUCTION = re.compile(
    r"""
        \b(?:ignore|disregard|forget|override|bypass)\s++(?:(?:all|any|every|the|your|of)\s++)*+
            (?:(?:previous|prior|above|earlier|other|safety|system)\s++)?+
            (?:instructions?|rules?|prompts?|guidelines?|policies|messages?)\b
      | \b(?:new|updated|real|actual)\s+(?:system\s+)?(?:instructions?|prompt)\s*:
      | \bsystem\s+prompt\b
      | \byou\s+are\s+now\b | \bfrom\s+now\s+on,?\s+you\b | \bact\s+as\s+(?:an?\s+|if\s+you\b)
      | \b(?:do\s+not|don['’]?t|never)\s+(?:tell|inform|(?:mention|reveal)\s+(?:this|it)\s+to)\s+
            (?:the\s+)?(?:user|anyone)\b
      | \b(?:reveal|print|send|leak|exfiltrate|post|upload)\s+(?:me\s+)?(?:the\s+|your\s+|all\s+|any\s+)*
            (?:system\s+prompt|api\s+keys?|keys?|credentials?|passwords?|secrets?|tokens?|environment)\b
      | </?\s*(?:system|memory|memories|instructions?|assistant|user|tool|context|entry|im_start|im_end)\b
            [^<>]{0,200}>
      | <\|[a-z_]+\|> | \[/?(?:INST|SYS)\] | ^[ \t]*(?:system|assistant|developer)\s*:
      | \bignorier\w{0,8}\s+(?:alle|die)\b.{0,30}\banweisungen | ignorez?\s+(?:toutes\s+)?les\s+instructions
      | ignora\s+(?:todas\s+)?las\s+instrucciones | 忽略.{0,6}(?:指令|指示|规则) | 無視.{0,6}指示
    """,
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)


_STRIDE = 32 * 1024
_OVERLAP = 2 * 1024


def is_instruction_like(text: str) -> bool:
    """Whether a text tries to tell a model what to do.

    Read in strides: a search keeps the interpreter to its end, and 256 KiB at once would take 55 ms of everybody's.
    """
    return any(_begins_in(text, begin) for begin in range(0, len(text), _STRIDE))


def _begins_in(text: str, begin: int) -> bool:
    found = _INSTRUCTION.search(text, begin, begin + _STRIDE + _OVERLAP)
    # What was found at the end of the stride may be cut off there.
    return found is not None and _INSTRUCTION.match(text, found.start()) is not None
