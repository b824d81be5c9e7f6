"""What is indexed of a memory: its text, and what it is about where the text leaves that out."""

from caisson.memory.domain.hashing import normalise


def phrase(text: str, subject: str | None, attribute: str | None) -> str:
    """Return `Ana, city: Oslo` for the text `Oslo` about Ana's city, and the text itself where it names both."""
    said = normalise(text)
    missing = [part for part in (subject, attribute) if part is not None and normalise(part) not in said]
    return f"{', '.join(missing)}: {text}" if missing else text
