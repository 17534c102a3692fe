"""Write the log of the pictures in docs/assets: eight days of a help desk, four tenants, three models, labels of sentences.

From the sixth day on another prompt is used, and the tenant `energy` gets more wrong answers.

python -m tests.benchmarks.written_log logs/ 260
"""

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

DAYS, DEPLOY_DAY = 8, 6
MODELS = ("gpt-mini-5", "gpt-mini-5", "qwen3-8b", "qwen3-8b", "qwen3-8b", "mistral-24b")
WRONG_SHARES = {"scooters": 0.09, "library": 0.07, "energy": 0.10, "clinic": 0.08}
TOPICS: dict[str, list[tuple[str, str, list[str], list[str]]]] = {
    "scooters": [
        (
            "What does a ride cost?",
            "Unlocking a scooter costs €1.00. Each minute costs €0.22. A ride is capped at €25 per day.",
            ["Unlocking costs €1.00.", "Each minute costs €0.22.", "A ride never costs more than €25 per day."],
            ["Each minute costs €0.32.", "The first 10 minutes are free.", "Members of Premium Plus pay nothing at all."],
        ),
        (
            "How old must I be?",
            "Riders must be at least 16 years old. Helmets are recommended. The top speed is 20 km/h.",
            ["You must be at least 16 years old.", "Helmets are recommended.", "The top speed is 20 km/h."],
            ["Helmets are mandatory.", "You must be at least 18 years old.", "The top speed is 25 km/h."],
        ),
        (
            "Where may I park?",
            "Park at a marked station or at the side of the pavement. Parking on a bridge costs a fee of €15.",
            ["Park at a marked station or at the side of the pavement.", "Parking on a bridge costs a fee of €15."],
            ["Parking on a bridge costs a fee of €50.", "You may park anywhere in the city for up to 48 hours."],
        ),
    ],
    "library": [
        (
            "How long may I keep a book?",
            "Books may be kept for 28 days. A loan can be renewed twice. Late books cost €0.20 per day.",
            ["Books may be kept for 28 days.", "A loan can be renewed twice.", "Late books cost €0.20 per day."],
            [
                "A loan can be renewed five times.",
                "Late books cost €2.00 per day.",
                "Students may keep books until graduation.",
            ],
        ),
        (
            "When is the library open?",
            "The main library is open from 8 a.m. to 6 p.m. on weekdays, and from 10 a.m. to 2 p.m. on Saturday.",
            ["On weekdays it is open from 8 a.m. to 6 p.m.", "On Saturday it is open from 10 a.m. to 2 p.m."],
            ["On Sunday it is open from 10 a.m. to 4 p.m.", "On weekdays it is open until 9 p.m."],
        ),
    ],
    "energy": [
        (
            "How do I cancel?",
            (
                "The contract can be canceled with 30 days' notice by letter or in the customer portal. "
                "A meter reading is needed on the last day."
            ),
            [
                "You can cancel with 30 days' notice.",
                "Cancel by letter or in the customer portal.",
                "A meter reading is needed on the last day.",
            ],
            [
                "You can cancel by phone at any time.",
                "You can cancel with 14 days' notice.",
                "A technician of Nordlicht Service visits you on the last day.",
            ],
        ),
        (
            "What is the tariff?",
            "Tariff Basis: €0.29 per kWh and €9.90 per month. Tariff Flex: €0.25 per kWh and €14.90 per month.",
            ["Tariff Basis costs €0.29 per kWh and €9.90 per month.", "Tariff Flex costs €0.25 per kWh and €14.90 per month."],
            [
                "Tariff Flex costs €0.19 per kWh.",
                "Tariff Basis costs €9.90 per year.",
                "New customers get a bonus of €150 in January 2027.",
            ],
        ),
    ],
    "clinic": [
        (
            "When do I get results?",
            "Blood results are available after 2 working days in the app. Dr. Weber calls patients if a value is critical.",
            ["Blood results are available after 2 working days.", "Dr. Weber calls you if a value is critical."],
            [
                "Blood results are available after 5 hours.",
                "Dr. Steiner calls every patient.",
                "You also receive a letter from the University Hospital Basel.",
            ],
        ),
        (
            "Do I need to fast?",
            "Do not eat for 12 hours before a fasting test. Water is allowed. Take your medicines as usual.",
            ["Do not eat for 12 hours before a fasting test.", "Water is allowed.", "Take your medicines as usual."],
            ["Coffee without sugar is allowed.", "Do not take any medicines in the morning.", "Do not eat for 24 hours."],
        ),
    ],
}
"""Tenant -> question, passage, supported sentences, unsupported sentences."""

OTHER_PASSAGES = [
    "Customer service answers within 2 working days. Write to help@example.org.",
    "This handbook is valid from 1 January 2026.",
    "Data are deleted after 90 days, unless the law asks for more.",
]


def write_log(folder: Path, rows_per_day: int, seed: int = 7) -> None:
    """Write a Parquet file per day, in folders with the hive key `dt`."""
    rng = random.Random(seed)
    number = 0
    for day in range(1, DAYS + 1):
        rows = list(_make_rows(rng, day, int(rows_per_day * rng.uniform(0.85, 1.15)), number))
        number += len(rows)
        path = folder / f"dt=2026-11-{day + 13:02d}" / "log.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows), path)


def _make_rows(rng: random.Random, day: int, count: int, first: int) -> Iterator[dict[str, Any]]:
    for number in range(first, first + count):
        tenant, model = rng.choice([*TOPICS]), rng.choice(MODELS)
        question, passage, supported, unsupported = rng.choice(TOPICS[tenant])
        sentences = rng.sample(supported, k=min(len(supported), rng.choice([1, 2, 2, 3])))
        is_wrong = rng.random() < _wrong_share(day, tenant, model)
        if is_wrong:
            sentences.insert(rng.randrange(len(sentences) + 1), rng.choice(unsupported))
        context = [passage, *rng.sample(OTHER_PASSAGES, rng.choice([0, 1, 2]))]
        rng.shuffle(context)
        yield {
            "row_id": f"q{number:05d}", "question": question, "context": [] if rng.random() < 0.01 else context,
            "response": " ".join(sentences), "tenant": tenant, "model": model,
            "prompt_version": "v7" if day >= DEPLOY_DAY else "v6", "label": "wrong" if is_wrong else "correct",
            "sentence_labels": list(_label_sentences(sentences, unsupported)),
        }  # fmt: skip


def _wrong_share(day: int, tenant: str, model: str) -> float:
    share = WRONG_SHARES[tenant] * (1.6 if model == "mistral-24b" else 1)
    if day >= DEPLOY_DAY:
        share += 0.06 * (model == "qwen3-8b") + 0.22 * (tenant == "energy")
    return share


def _label_sentences(sentences: list[str], unsupported: list[str]) -> Iterator[dict[str, Any]]:
    start = 0
    for sentence in sentences:
        yield {"start": start, "end": start + len(sentence), "supported": sentence not in unsupported}
        start += len(sentence) + 1


if __name__ == "__main__":
    write_log(Path(sys.argv[1]), int(sys.argv[2]))
