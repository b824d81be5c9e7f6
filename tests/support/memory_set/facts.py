"""What is remembered, as patterns: a text, and how an easy, a middling and a hard question ask for it.

`{}` slots take values of the pools; `{who}` is a colleague, `{team}` a team of the tenant.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One pattern. `attribute` says which facts replace each other."""

    attribute: str
    text: str
    easy: str
    medium: str
    hard: str


WORK = (
    Fact(
        attribute="standup",
        text="The daily stand-up of the {team} team is at {hour} in {room}.",
        easy="When is the daily stand-up of the {team} team?",
        medium="At what time does the {team} group meet each morning?",
        hard="I have to tell everybody in {team} something in person. When will I find them together?",
    ),
    Fact(
        attribute="deploy day",
        text="Production releases go out on {weekday} only, never on the day before a public holiday.",
        easy="On which day do production releases go out?",
        medium="When may we deploy to production?",
        hard="The fix is merged; how soon will customers get it?",
    ),
    Fact(
        attribute="main database",
        text="The main database of the company is {database}, hosted in {cloud}.",
        easy="Which database is the main one and where is it hosted?",
        medium="Where do we store our primary data?",
        hard="Auditors ask in which country customer records physically live.",
    ),
    Fact(
        attribute="backup",
        text="Backups run every night at {hour} and are kept for ninety days.",
        easy="How long are backups kept?",
        medium="What is the retention of our nightly snapshots?",
        hard="A table was dropped by mistake two months ago. Can we get it back?",
    ),
    Fact(
        attribute="expense limit",
        text="Expenses above 200 euros need approval from {who} before they are booked.",
        easy="Who must approve expenses above 200 euros?",
        medium="I want to buy a 350 euro monitor; whose sign-off do I need?",
        hard="My purchase got stuck because somebody has to agree first. Whom should I ask?",
    ),
    Fact(
        attribute="office key",
        text="The spare key of the office is kept at the reception desk of {bank} across the street.",
        easy="Where is the spare key of the office kept?",
        medium="I am locked out of the office. Where is another key?",
        hard="Nobody is in yet and the door is shut. What now?",
    ),
    Fact(
        attribute="printer supplier",
        text="Toner and paper for the printers are ordered from {supplier}, customer number K-{number}.",
        easy="From which supplier are toner and paper ordered?",
        medium="Where do we buy cartridges for the printing machines?",
        hard="The copier is empty again. Which shop do we call?",
    ),
    Fact(
        attribute="infrastructure tool",
        text="Servers are provisioned with {tool}; changes by hand are reverted every night.",
        easy="With which tool are servers provisioned?",
        medium="How do we set up new machines?",
        hard="I edited a config on the host yesterday and today it is gone. Why?",
    ),
    Fact(
        attribute="chat",
        text="Internal chat moved to {chat}; e-mail is for customers only.",
        easy="Which internal chat do we use?",
        medium="What do colleagues use for instant messages?",
        hard="Should I mail my teammate or write elsewhere?",
    ),
    Fact(
        attribute="code language",
        text="New services of the {team} team are written in {language}, old ones stay as they are.",
        easy="In which language are new services of the {team} team written?",
        medium="I start a fresh component for {team}; what should I code it in?",
        hard="A candidate for {team} asks what she would be programming with all day.",
    ),
    Fact(
        attribute="security contact",
        text="Security reports go to {who}, who must be called by phone at any hour.",
        easy="To whom do security reports go?",
        medium="Who has to be told about a vulnerability at night?",
        hard="It is three in the morning and I think we have been breached. What do I do?",
    ),
    Fact(
        attribute="fiscal year",
        text="The fiscal year begins in {month}, and budgets are closed two weeks before.",
        easy="In which month does the fiscal year begin?",
        medium="When do the accounts start anew?",
        hard="By when must I have spent what is left for my department?",
    ),
    Fact(
        attribute="invoice terms",
        text="{supplier} is paid within {days} days; later than that they charge interest.",
        easy="Within how many days is {supplier} paid?",
        medium="What are the payment terms of {supplier}?",
        hard="The bill from {supplier} has been lying here for weeks. Is that going to cost us?",
    ),
    Fact(
        attribute="parking",
        text="Visitors may park on the {colour} lot behind the building; the front is for deliveries.",
        easy="Where may visitors park?",
        medium="A client comes by car. Where can she leave it?",
        hard="Our guest got a ticket for blocking the lorries. Where should he have stopped?",
    ),
    Fact(
        attribute="coffee machine",
        text="The coffee machine is descaled by {who} on the first {weekday} of each month.",
        easy="Who descales the coffee machine?",
        medium="Who looks after the espresso maker in the kitchen?",
        hard="The brew tastes odd. Whose turn is it to clean?",
    ),
    Fact(
        attribute="wifi",
        text="Guests use the wireless network called {colour}-guest; its passphrase changes every {weekday}.",
        easy="Which wireless network do guests use?",
        medium="What Wi-Fi can a visitor connect to?",
        hard="Somebody from outside wants to get online with a laptop.",
    ),
    Fact(
        attribute="holiday",
        text="The office is closed in the last two weeks of {month}.",
        easy="In which weeks is the office closed?",
        medium="When does everybody have a break at the same time?",
        hard="Can I schedule a workshop with the whole staff at the end of {month}?",
    ),
    Fact(
        attribute="travel agency",
        text="Business trips are booked through {who}, with {airline} preferred for flights.",
        easy="Through whom are business trips booked?",
        medium="I must fly to a conference; who arranges my ticket?",
        hard="How do I get to the customer in Lisbon next week without paying myself?",
    ),
)

PEOPLE = (
    Fact(
        attribute="drink",
        text="{who} prefers {drink} in the morning.",
        easy="What does {who} prefer in the morning?",
        medium="What should I order for {who} at breakfast?",
        hard="I want to surprise {who} with something nice to start the day.",
    ),
    Fact(
        attribute="allergy",
        text="{who} is allergic to {allergy}.",
        easy="To what is {who} allergic?",
        medium="What must not be in the food that we serve {who}?",
        hard="Is there any danger for {who} at the buffet?",
    ),
    Fact(
        attribute="hobby",
        text="In the free time {who} goes in for {hobby}.",
        easy="What does {who} go in for in the free time?",
        medium="What is the hobby of {who}?",
        hard="What could I talk about with {who} besides work?",
    ),
    Fact(
        attribute="remote day",
        text="{who} works from home every {weekday}.",
        easy="On which day does {who} work from home?",
        medium="When is {who} not in the office?",
        hard="I went to see {who} at the desk and it was empty. Why?",
    ),
    Fact(
        attribute="role",
        text="{who} leads the {team} team and reports to the board.",
        easy="Which team does {who} lead?",
        medium="What is {who} in charge of?",
        hard="What would the board ask {who} about?",
    ),
    Fact(
        attribute="editor",
        text="{who} writes code in {editor} and refuses every other editor.",
        easy="In which editor does {who} write code?",
        medium="What does {who} use for programming?",
        hard="I will share my screen with {who}. Which key bindings shall I switch on?",
    ),
)

OWN = (
    Fact(
        attribute="home",
        text="I live in {city}, near the old market.",
        easy="In which city do I live?",
        medium="Where is my home?",
        hard="Which airport should my return flight go to?",
    ),
    Fact(
        attribute="pet",
        text="I have {pet}.",
        easy="Which pet do I have?",
        medium="What animal lives with me?",
        hard="What do I need to take care of before I travel?",
    ),
    Fact(
        attribute="car",
        text="I drive {car} to work.",
        easy="What do I drive to work?",
        medium="Which vehicle is mine?",
        hard="What do they have to look for in the car park when they fetch me?",
    ),
    Fact(
        attribute="instrument",
        text="I play the {instrument} in an amateur orchestra.",
        easy="Which instrument do I play?",
        medium="What do I do in the orchestra?",
        hard="What kind of sheet music would be a good present for me?",
    ),
    Fact(
        attribute="seat",
        text="On planes I always want the {seat} seat.",
        easy="Which seat do I want on planes?",
        medium="Where do I like to sit when I fly?",
        hard="Check me in for tomorrow, you know what I like.",
    ),
    Fact(
        attribute="shirt",
        text="My shirt size is {size} and my favourite colour is {colour}.",
        easy="What is my shirt size?",
        medium="Which size of clothes do I wear?",
        hard="Order the team hoodie for me.",
    ),
    Fact(
        attribute="doctor",
        text="My dentist is Doctor Hallam on {weekday} afternoons.",
        easy="Who is my dentist?",
        medium="When does the doctor for my teeth have time?",
        hard="A filling fell out; whom should I call?",
    ),
    Fact(
        attribute="school",
        text="My daughter goes to {school}; she must be fetched at {hour}.",
        easy="To which school does my daughter go?",
        medium="When do I have to pick up my child?",
        hard="Why can I never stay in the late meeting?",
    ),
    Fact(
        attribute="book",
        text="My favourite book is {book}.",
        easy="What is my favourite book?",
        medium="Which novel do I love most?",
        hard="What would I take to a desert island to read?",
    ),
    Fact(
        attribute="bank",
        text="My salary goes to {bank}.",
        easy="To which bank does my salary go?",
        medium="Where is my pay transferred?",
        hard="Payroll says that my account is missing. Which one do I use?",
    ),
)

EPISODES = (
    Fact(
        attribute="migration",
        text="The migration of the {team} tables to {database} was rolled back because the disk filled up.",
        easy="Why was the migration of the {team} tables rolled back?",
        medium="What went wrong when {team} moved to {database}?",
        hard="Before we try the {database} switch again, what must we watch out for?",
    ),
    Fact(
        attribute="outage",
        text="An expired certificate took the customer portal down for {days} minutes in {month}.",
        easy="What took the customer portal down in {month}?",
        medium="What was the cause of the portal outage?",
        hard="Have we ever locked our clients out by forgetting to renew something?",
    ),
    Fact(
        attribute="delivery",
        text="{supplier} delivered the wrong connectors in {month}, and the order had to be sent back.",
        easy="What did {supplier} deliver wrong in {month}?",
        medium="Was there trouble with a shipment from {supplier}?",
        hard="Can we rely on {supplier} for the next batch?",
    ),
    Fact(
        attribute="interview",
        text="The interview of the candidate from {city} was cancelled since {who} was ill.",
        easy="Why was the interview of the candidate from {city} cancelled?",
        medium="What happened with the applicant from {city}?",
        hard="Somebody from {city} complains that nobody talked to her. What is behind it?",
    ),
)

UPDATES = (
    Fact(
        attribute="manager",
        text="The manager of the {team} team is {who}.",
        easy="Who is the manager of the {team} team?",
        medium="Who is the boss of {team} now?",
        hard="My holiday in {team} must be signed. By whom?",
    ),
    Fact(
        attribute="address",
        text="The headquarters is in {city}, on the third floor.",
        easy="In which city is the headquarters?",
        medium="Where is the head office now?",
        hard="Which town do I put on the label of a parcel to the directors?",
    ),
    Fact(
        attribute="vendor",
        text="Our payment provider is {bank}.",
        easy="Who is our payment provider?",
        medium="Which company handles card payments at present?",
        hard="Refunds are stuck. With whom do I open a ticket?",
    ),
    Fact(
        attribute="retention",
        text="Log files are retained for {days} days.",
        easy="For how many days are log files retained?",
        medium="How long do we keep logs these days?",
        hard="Will last month's traces still be there for the investigation?",
    ),
    Fact(
        attribute="lead time",
        text="The weekly report of {who} is due on {weekday}.",
        easy="On which day is the weekly report of {who} due?",
        medium="What is the current deadline for the report by {who}?",
        hard="When at the latest will I be able to read the numbers from {who}?",
    ),
    Fact(
        attribute="meeting room",
        text="The board meets in {room}.",
        easy="Where does the board meet?",
        medium="In which place do the directors hold their sessions now?",
        hard="Where do I have to set up the projector for the directors?",
    ),
)

NEGATIONS = (
    Fact(
        attribute="likes",
        text="{who} likes {food}.",
        easy="Does {who} like {food}?",
        medium="Which dish would make {who} happy?",
        hard="Where should I take {who} for lunch?",
    ),
    Fact(
        attribute="dislikes",
        text="{who} does not like {food}.",
        easy="Which food does {who} not like?",
        medium="What should I never cook for {who}?",
        hard="Which restaurant would be a mistake with {who}?",
    ),
    Fact(
        attribute="never calls",
        text="{who} must not be called after {hour}.",
        easy="After which hour must {who} not be called?",
        medium="From when on is phoning {who} forbidden?",
        hard="It is late. May I still ring {who}?",
    ),
    Fact(
        attribute="no access",
        text="The {team} team has no access to the payroll system.",
        easy="Which system does the {team} team have no access to?",
        medium="What are people in {team} not allowed to open?",
        hard="Why does payroll refuse my colleague from {team}?",
    ),
)

NUMBERS = (
    Fact(
        attribute="port",
        text="The {service} service listens on port {port}.",
        easy="Which service listens on port {port}?",
        medium="On which port can I reach {service}?",
        hard="What do I put behind the colon to connect to {service}?",
    ),
    Fact(
        attribute="deadline",
        text="The deadline of contract C-{contract} is {day} October.",
        easy="What is the deadline of contract C-{contract}?",
        medium="Until when does C-{contract} have to be signed?",
        hard="Which contract is due on {day} October?",
    ),
    Fact(
        attribute="error code",
        text="Error {code} means that {meaning}.",
        easy="What does error {code} mean?",
        medium="A user sees {code}. What is wrong?",
        hard="{code}",
    ),
    Fact(
        attribute="extension",
        text="The phone extension of {who} is {extension}.",
        easy="What is the phone extension of {who}?",
        medium="How can I ring {who} internally?",
        hard="Somebody called from {extension}. Who was it?",
    ),
)

SERVICES = ("ledger", "mailer", "pricing", "catalogue")
MEANINGS = (
    "the token has expired",
    "the warehouse is out of stock",
    "the meter reading is older than a day",
    "the upload was cut off",
)
