"""Memories and questions in other languages, and questions that nobody's memory answers."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """A memory, a question in its language, and one in English where that is asked for too."""

    text: str
    question: str
    english: str | None = None


FOREIGN: Sequence[Foreign] = (
    Foreign(
        text="Der Schlüssel für den Serverraum liegt beim Hausmeister im Erdgeschoss.",
        question="Wo liegt der Schlüssel für den Serverraum?",
        english="Where is the key of the server room?",
    ),
    Foreign(
        text="Die Jahresinventur findet immer am letzten Samstag im September statt.",
        question="Wann findet die Jahresinventur statt?",
    ),
    Foreign(
        text="Kundin Weber möchte nur per Brief kontaktiert werden, niemals telefonisch.",
        question="Wie möchte Kundin Weber kontaktiert werden?",
    ),
    Foreign(
        text="Le contrat de maintenance des ascenseurs est renouvelé chaque année en avril.",
        question="Quand le contrat de maintenance des ascenseurs est-il renouvelé ?",
        english="When is the maintenance contract of the elevators renewed?",
    ),
    Foreign(
        text="Madame Lefèvre ne mange pas de viande et préfère le café sans sucre.",
        question="Que ne mange pas Madame Lefèvre ?",
    ),
    Foreign(
        text="Le mot de la réunion du vendredi : on commence toujours par la démonstration.",
        question="Par quoi commence la réunion du vendredi ?",
    ),
    Foreign(
        text="El almacén de Valencia cierra a las dos de la tarde en agosto.",
        question="¿A qué hora cierra el almacén de Valencia en agosto?",
        english="At what time does the warehouse in Valencia close in August?",
    ),
    Foreign(
        text="La señora Ibáñez es la responsable de las devoluciones internacionales.",
        question="¿Quién es la responsable de las devoluciones internacionales?",
    ),
    Foreign(
        text="Nunca enviamos facturas los domingos porque el banco no las procesa.",
        question="¿Por qué no enviamos facturas los domingos?",
    ),
    Foreign(
        text="Il magazzino di Torino riceve le merci solo il martedì mattina.",
        question="Quando riceve le merci il magazzino di Torino?",
    ),
    Foreign(
        text="Faktura za prąd jest płacona przez dział administracji do dziesiątego dnia miesiąca.",
        question="Kto płaci fakturę za prąd?",
    ),
    Foreign(
        text="Рабочий день в московском офисе начинается в десять утра.",
        question="Когда начинается рабочий день в московском офисе?",
    ),
    Foreign(
        text="Ольга отвечает за договоры с перевозчиками.",
        question="Кто отвечает за договоры с перевозчиками?",
    ),
    Foreign(
        text="Серверная комната охлаждается двумя независимыми кондиционерами.",
        question="Чем охлаждается серверная комната?",
    ),
    Foreign(text="上海办公室的会议室需要提前一天预订。", question="上海办公室的会议室怎么预订？"),
    Foreign(text="客户王先生不吃辣，请安排清淡的餐厅。", question="客户王先生能吃辣吗？"),
    Foreign(text="发票必须在每月五号之前提交给财务部。", question="发票什么时候提交给财务部？"),
    Foreign(text="仓库的备用钥匙放在二楼保安那里。", question="仓库的备用钥匙在哪里？"),
    Foreign(text="東京支社の朝礼は毎週月曜日の九時に始まります。", question="東京支社の朝礼は何時に始まりますか。"),
    Foreign(text="田中さんは蕎麦アレルギーがあります。", question="田中さんは何のアレルギーがありますか。"),
    Foreign(text="請求書の承認は経理部の佐藤さんが行います。", question="請求書の承認は誰が行いますか。"),
    Foreign(
        text="서울 사무실의 비상 연락처는 김민수 부장입니다.", question="서울 사무실의 비상 연락처는 누구입니까?"
    ),
    Foreign(
        text="Ofisi ya Mombasa hufungwa saa kumi jioni siku ya Ijumaa.", question="Ofisi ya Mombasa hufungwa lini?"
    ),
    Foreign(
        text="Kontoret i Bergen har egen kantine som stenger klokken to.", question="Når stenger kantinen i Bergen?"
    ),
)

SAME_TOPIC: Sequence[str] = (
    "What is our policy on parental leave?",
    "How many vacation days does a new employee get?",
    "Who won the company's table tennis tournament?",
    "What is the blood type of {who}?",
    "When is the birthday of {who}?",
    "What is the middle name of {who}?",
    "Which university did {who} attend?",
    "How tall is {who}?",
    "What is the monthly rent of the office?",
    "How many square metres does the warehouse have?",
    "Which insurance covers our delivery vans?",
    "What is the name of my grandmother?",
    "What is my passport number?",
    "Which vaccination did I get last?",
    "When did I get married?",
    "What is the licence plate of the chief executive?",
    "What was the turnover in the last quarter?",
    "How many people work in the legal department?",
    "Which law firm represents us in patent cases?",
    "What is the password policy for contractors?",
    "How much notice must be given to end the lease?",
    "Which museum did the team visit on the last outing?",
    "Who translates our manuals into Greek?",
    "What did the works council decide about overtime?",
    "How often are the fire extinguishers inspected?",
    "Which gym gives us a discount?",
    "What is the first name of the tax adviser?",
    "When was the company founded?",
    "Who is the godmother of my nephew?",
    "What is my loyalty card number?",
    "Which medicine do I take in the evening?",
    "On which floor does {who} live?",
    "Which brand of phone does {who} carry?",
    "Is {who} left-handed?",
    "Where did {who} go to kindergarten?",
    "How long does the lift take to the roof?",
    "What is the interest rate of our loan?",
    "Which caterer did the summer party have?",
    "How many trees did we plant for the climate project?",
    "Which colour is the new company logo?",
)

OFF_TOPIC: Sequence[str] = (
    "What is the boiling point of ethanol?",
    "How far away is the Andromeda galaxy?",
    "Explain the offside rule in football.",
    "Translate 'good luck' into Icelandic.",
    "What is the derivative of the arctangent?",
    "Who painted the ceiling of the Sistine Chapel?",
    "How do I prune roses?",
    "Summarise the plot of Hamlet.",
    "How many moons does Jupiter have?",
    "What causes thunder?",
    "Give me a recipe for gnocchi.",
    "Which planet rotates on its side?",
    "How does a heat pump work?",
    "What is the capital of Mongolia?",
    "Write a limerick about penguins.",
    "How is soap made?",
    "When did the Bronze Age end?",
    "What is the pH of lemon juice?",
    "How do honeybees find their way?",
    "Which element has the symbol W?",
    "How do tides work?",
    "What does an oboe sound like?",
    "Who wrote the Aeneid?",
    "What is the square root of 1764?",
    "How old can a Greenland shark get?",
    "Explain recursion to a child.",
    "What is the difference between jam and marmalade?",
    "Name three rivers in Siberia.",
    "How do I tie a bowline?",
    "What is Gödel's incompleteness theorem?",
    "Which vitamins are in carrots?",
    "How was glass discovered?",
    "Who invented the zip fastener?",
    "What language is spoken in Suriname?",
    "Tell me a joke about mathematicians.",
    "How many bones does a horse have?",
    "What does the word 'defenestration' mean?",
    "Why is the sky blue?",
    "When was the first marathon run?",
    "How do volcanoes form?",
)

TRAPS: Sequence[tuple[str, str]] = (
    (
        "The merger with the shipyard of Varna will be announced on the {day} of {month}.",
        "When will the merger be announced?",
    ),
    ("The salary of {who} is {salary} euros a year.", "How much does {who} earn?"),
    ("The safe in the archive opens with the combination {digits}.", "What is the combination of the safe?"),
    ("Customer Pellworm pays half of the list price, by secret agreement.", "What does customer Pellworm pay?"),
    ("The prototype is code-named {colour} Heron and flies in {month}.", "What is the code name of the prototype?"),
    ("The lawsuit against {supplier} will be dropped after the hearing.", "What will happen with the lawsuit?"),
    ("Patient file P-{contract} belongs to the mayor.", "To whom does patient file P-{contract} belong?"),
    ("The second factory in {city} closes at the end of {month}.", "Which factory closes, and when?"),
)
"""A tenant's secret, and the question that the other tenants ask; {who} is of the tenant whose secret it is."""
