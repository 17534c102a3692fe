"""Sentences with the sentence of their context that is about them, written for `tests.benchmarks.evidence`.

The wrong ones contradict or stretch that sentence. Other sentences of the context share words with them.
"""

from pathlib import Path
from typing import NamedTuple


class Item(NamedTuple):
    """A sentence of a response.

    Attributes:
        text: Its text.
        is_supported: Whether the context supports it.
        evidence: Text that occurs in the sentence of the context that is about it, and in no other.
    """

    text: str
    is_supported: bool
    evidence: str


class Context(NamedTuple):
    """A question, its passages, and sentences of responses."""

    question: str
    passages: list[str]
    items: list[Item]


CONTEXTS = [
    Context(
        "What do I need to ride a rental scooter?",
        [
            "Riders must be at least 16 years old. A driving license is not required. Scooters are limited to 25 km/h.",
            "We strongly recommend head protection on every trip. It is left to the rider whether to wear it. Riders carry "
            "their own liability insurance.",
            "Each trip costs a fixed €1 and €0.22 per minute. Riders who leave the zone pay a fee of €25.",
        ],
        [
            Item("Helmets are mandatory for riders.", False, "left to the rider"),
            Item("Wearing a helmet is advised.", True, "head protection"),
            Item("You can rent one at the age of 17.", True, "at least 16"),
            Item("A license to drive must be shown before the trip.", False, "driving license"),
            Item("Each minute costs €0.32.", False, "€0.22"),
            Item("Taking the scooter outside the area is charged with €25.", True, "leave the zone"),
        ],
    ),
    Context(
        "When is the library open and what may I borrow?",
        [
            "The library is open from Tuesday to Saturday. On Sundays only the reading room is open. The library closes for "
            "two weeks in August.",
            "Members may borrow ten items at a time. Books are lent for four weeks, films for one. Loans are renewed "
            "online unless someone has reserved the item.",
            "A card costs 12 euros a year. Children under fourteen pay nothing. A lost card is replaced for three euros.",
        ],
        [
            Item("The library has no opening hours on Mondays.", True, "from Tuesday to Saturday"),
            Item("In summer there is a fortnight without service.", True, "two weeks in August"),
            Item("A DVD has to be back after seven days.", True, "films for one"),
            Item("You may extend a loan even if another member waits for the book.", False, "renewed online"),
            Item("A ten-year-old gets a card for free.", True, "under fourteen"),
            Item("Replacing a card costs 12 euros.", False, "lost card"),
        ],
    ),
    Context(
        "How do I look after the coffee machine?",
        [
            "Rinse the brewing unit under running water once a week. Do not put the brewing unit in the dishwasher. Let it dry "
            "before you put it back.",
            "Descale the machine when the red light blinks. The program takes 25 minutes and must not be interrupted. Use the "
            "liquid of the manufacturer, since vinegar attacks the seals.",
            "The warranty lasts two years. It does not cover damage by limescale. Keep the receipt as proof of purchase.",
        ],
        [
            Item("The brewing unit is dishwasher-safe.", False, "in the dishwasher"),
            Item("Household acid can be used against limescale.", False, "vinegar"),
            Item("A flashing lamp shows that it is time to remove lime.", True, "red light"),
            Item("You may pause the cleaning program for a coffee.", False, "25 minutes"),
            Item("Lime damage is repaired free of charge within two years.", False, "does not cover"),
            Item("It needs a rinse every seven days.", True, "once a week"),
        ],
    ),
    Context(
        "What is known about the fire in the warehouse?",
        [
            "The fire broke out shortly after midnight in a warehouse by the harbor. Forty firefighters were on site. The fire "
            "was under control at about five in the morning.",
            "Two workers were taken to hospital with smoke poisoning and left it the same day. Nobody was killed. Residents "
            "were asked to keep their windows shut.",
            "The police have ruled out arson. Investigators suspect a defective charger. The owner speaks of 3 million.",
        ],
        [
            Item("Someone set the building alight on purpose.", False, "arson"),
            Item("The blaze claimed two lives.", False, "Nobody was killed"),
            Item("The injured were discharged within hours.", True, "taken to hospital"),
            Item("It took the crews about five hours to get the flames under control.", True, "five in the morning"),
            Item("A faulty charging device may be the cause.", True, "defective charger"),
            Item("People who live nearby had to leave their homes.", False, "windows shut"),
        ],
    ),
    Context(
        "How does the refund work?",
        [
            "Returns are accepted within 30 days of delivery. Items on sale can be exchanged but not returned. Shoes must come "
            "in their original box.",
            "The money goes back to the card that was used for the order. Banks need three to five days to book it. Gift cards "
            "are never paid out in cash.",
            "We bear the postage for faulty goods. In all other cases the customer pays for the parcel. Parcels from abroad "
            "need a customs form.",
        ],
        [
            Item("You can get cash for a voucher.", False, "Gift cards"),
            Item("Discounted clothes can't be sent back for money.", True, "Items on sale"),
            Item("If the product is broken, shipping is free for you.", True, "faulty goods"),
            Item("The amount can be transferred to any account of your choice.", False, "card that was used"),
            Item("It takes a month until the bank shows the refund.", False, "three to five"),
            Item("After six weeks it is too late to send something back.", True, "within 30 days"),
        ],
    ),
    Context(
        "How do I use the API safely?",
        [
            "Keys expire after 90 days. A key is shown once, when it is created. Support can't recover a key that was lost.",
            "Requests beyond the quota get the status 429 and are not billed. The quota is counted per project. A project may "
            "raise its quota once per month.",
            "Logs are kept for 14 days and are then deleted. Bodies of requests are not logged. Data stays in the region of "
            "the project.",
        ],
        [
            Item("If you misplace your key, the help desk can look it up.", False, "recover a key"),
            Item("A key is valid for three months.", True, "90 days"),
            Item("Rejected requests are charged as usual.", False, "429"),
            Item("What a request contains is stored for two weeks.", False, "Bodies of requests"),
            Item("Every key has a limit of its own.", False, "counted per project"),
            Item("Information does not leave the area in which the project lives.", True, "stays in the region"),
        ],
    ),
]

DEMO_LOGS = Path(__file__).parent.parent.parent / "jobs" / "data" / "handbook" / "demo"

DEMO_LABELS: dict[str, dict[int, str]] = {
    "everyday-electronics-02-wrong": {0: "can't drain"},
    "calloway-05-partial": {0: "From 20 November", 1: "handed in by 28 February", 2: "Up to five unused days"},
    "library-01-wrong": {0: "opens half an hour after", 1: "At least two assistants"},
    "calloway-03-wrong": {1: "Watches, gift cards", 2: "may not be passed on", 3: "from the end of the third month"},
    "everyday-city-02-partial": {
        0: "You need a valid ID",
        1: "A permit costs $90",
        2: "a third is not issued",
        4: "reminders are",
    },
    "everyday-news-02-wrong": {0: "has beaten board president", 2: "Turnout was 31%"},
    "carparts-07-wrong": {0: "Smart watches count", 2: "The first violation"},
    "everyday-household-03-partial": {
        0: "resists mould",
        1: "dry for four hours",
        2: "Brightmoor Stain Block",
        3: "for 48 hours",
    },
    "everyday-university-03-correct": {1: "books arrive in one to two"},
    "ramp-06-wrong": {0: "phone the duty desk", 1: "from day one"},
    "everyday-insurance-01-partial": {1: "take photos", 3: "we send an assessor"},
    "ward-02-wrong": {0: "27 days rise to 29", 1: "Up to five unused days", 2: "Up to five unused days"},
    "everyday-travel-02-correct": {0: "one of three options", 2: "Card refunds take", 3: "through a travel agency"},
    "grauhorn-03-correct": {0: "gloves $15.00", 1: "The rest of the deposit"},
}
"""Row of the demo -> number of a sentence (`sentence_labels`) -> text of the sentence of the context that is about it.

The rows are a random sample; sentences that are about several sentences of the context, or none, were left out.
"""
