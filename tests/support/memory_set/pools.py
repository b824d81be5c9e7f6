"""The values that facts are filled with."""

from collections.abc import Mapping, Sequence

TENANTS: Mapping[str, Sequence[str]] = {
    "northwind": ("ana", "ben", "cyra"),
    "helios": ("dora", "elias", "fay"),
    "quarry": ("gustav", "hana", "ivo"),
    "lumen": ("jun", "kaja", "leo"),
}
"""Each tenant's users; the third keeps little to itself, so that it can ask what only others know."""

COLLEAGUES: Mapping[str, Sequence[str]] = {
    "northwind": ("Marta", "Oskar", "Priya"),
    "helios": ("Tomasz", "Yuki", "Nadia"),
    "quarry": ("Rafael", "Ingrid", "Samuel"),
    "lumen": ("Beatriz", "Dmitri", "Amara"),
}

TEAMS: Mapping[str, Sequence[str]] = {
    "northwind": ("harbour", "customs"),
    "helios": ("rooftop", "inverter"),
    "quarry": ("billing", "search"),
    "lumen": ("radiology", "reception"),
}

POOLS: Mapping[str, Sequence[str]] = {
    "city": ("Oslo", "Quito", "Lyon", "Tampere", "Porto", "Adelaide", "Kraków", "Nairobi", "Ghent", "Osaka"),
    "drink": ("green tea", "oat-milk latte", "sparkling water", "ginger ale", "black coffee", "mango lassi"),
    "food": ("sushi", "falafel", "lasagne", "ramen", "pierogi", "dosa"),
    "allergy": ("peanuts", "shellfish", "lactose", "celery", "sesame", "penicillin"),
    "hobby": ("rock climbing", "bird watching", "pottery", "chess", "sailing", "bookbinding"),
    "instrument": ("cello", "trumpet", "accordion", "clarinet", "banjo", "harp"),
    "pet": ("a beagle called Biscuit", "a tabby cat called Miso", "two parrots", "a tortoise called Zeno"),
    "car": ("a blue Skoda estate", "a second-hand Fiat", "an electric Renault", "a cargo bicycle"),
    "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday"),
    "hour": ("07:30", "08:15", "09:45", "11:00", "14:30", "16:45"),
    "editor": ("Vim", "Emacs", "Helix", "Zed", "Kate"),
    "language": ("Rust", "Go", "Kotlin", "Elixir", "Python"),
    "database": ("PostgreSQL", "MariaDB", "CockroachDB", "SQLite", "FoundationDB"),
    "cloud": ("Frankfurt", "Stockholm", "Montréal", "Sydney", "São Paulo"),
    "supplier": ("Brightwell", "Kestrel & Sons", "Aurora Parts", "Delmar", "Tinfoil Works"),
    "room": ("the greenhouse", "room 4.12", "the attic studio", "the glass box", "the library corner"),
    "bank": ("Meridian Bank", "Union Mutual", "Harbor Credit", "Crescent Savings"),
    "airline": ("Finnair", "KLM", "Iberia", "Qantas"),
    "seat": ("window", "aisle"),
    "school": ("Elm Street School", "the Montessori on Canal Road", "Saint Hilda's", "Riverside Primary"),
    "month": ("January", "March", "May", "August", "October", "November"),
    "size": ("S", "M", "L", "XL"),
    "colour": ("teal", "crimson", "mustard", "lavender"),
    "book": ("The Left Hand of Darkness", "Middlemarch", "Dune", "The Master and Margarita"),
    "tool": ("Terraform", "Ansible", "Pulumi", "Nomad"),
    "chat": ("Matrix", "Mattermost", "Zulip", "Rocket.Chat"),
}
