"""Powertools for AWS Lambda (Python): batch and idempotency, put together as its documentation shows.

One line of JSON in, one out, for each batch: see proof/bench/src/contestant/mod.rs.
"""

import json
import os
import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)

processor = BatchProcessor(event_type=EventType.SQS)
persistence = DynamoDBPersistenceLayer(table_name=os.environ["CLAIMANT_BENCH_TABLE"])
key = os.environ.get("CLAIMANT_BENCH_KEY", "order_id")
config = IdempotencyConfig(event_key_jmespath=f"powertools_json(body).{key}")
ran = 0


def follow(name: str) -> None:
    """Says that the handler has begun, and blocks until it is told how it ends: see proof/bench/src/contestant/told.rs."""
    say({"began": name})
    told = Path(os.environ["CLAIMANT_BENCH_TOLD"], name)
    while (how := told.read_text() if told.exists() else "") not in ("complete", "fail"):
        time.sleep(0.005)
    if how == "fail":
        raise RuntimeError("the handler was told to fail")


@idempotent_function(data_keyword_argument="record", config=config, persistence_store=persistence)
def record_handler(record: SQSRecord) -> None:
    global ran
    order = json.loads(record.body)
    ran += 1
    if "told" in order:
        follow(order["told"])


class Context:
    """The part of Lambda's context that Powertools reads."""

    def __init__(self, remaining_ms: int) -> None:
        self.end = time.monotonic() + remaining_ms / 1_000

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int((self.end - time.monotonic()) * 1_000))


def lambda_handler(event: dict, context: Context) -> dict:
    config.register_lambda_context(context)
    return process_partial_response(
        event=event, record_handler=record_handler, processor=processor, context=context
    )


def say(answer: dict) -> None:
    print("claimant-bench", json.dumps(answer), flush=True)


def main() -> None:
    global ran
    names = ("aws-lambda-powertools", "boto3")
    versions = [f"{name} {version(name)}" for name in names] + [f"Python {platform.python_version()}"]
    say({"ready": ", ".join(versions)})
    for line in sys.stdin:
        task = json.loads(line)
        event, context = task["event"], Context(task["remaining_ms"])
        ran = 0
        cpu, wall = time.process_time_ns(), time.perf_counter_ns()
        try:
            failed = [failure["itemIdentifier"] for failure in lambda_handler(event, context)["batchItemFailures"]]
        except Exception as error:  # Powertools raises when every message of a batch failed.
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            failed = [record["messageId"] for record in event["Records"]]
        wall, cpu = time.perf_counter_ns() - wall, time.process_time_ns() - cpu
        say({"wall_ns": wall, "cpu_ns": cpu, "ran": ran, "failed": failed})


main()
