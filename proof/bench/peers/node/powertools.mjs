// Powertools for AWS Lambda (TypeScript): batch and idempotency, put together as its documentation shows.
// JavaScript, because the oldest node that Lambda offers runs no TypeScript by itself.

import { BatchProcessor, EventType, processPartialResponse } from '@aws-lambda-powertools/batch';
import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency';
import { DynamoDBPersistenceLayer } from '@aws-lambda-powertools/idempotency/dynamodb';
import { handle, run } from './contestant.mjs';

const processor = new BatchProcessor(EventType.SQS);
const persistenceStore = new DynamoDBPersistenceLayer({ tableName: process.env.CLAIMANT_BENCH_TABLE });
const key = process.env.CLAIMANT_BENCH_KEY ?? 'order_id';
const config = new IdempotencyConfig({ eventKeyJmesPath: `powertools_json(body).${key}` });

const processRecord = makeIdempotent(async (record) => handle(JSON.parse(record.body)), { persistenceStore, config });

const handler = async (event, context) => {
  config.registerLambdaContext(context);
  return processPartialResponse(event, processRecord, processor, { context });
};

const packages = ['@aws-lambda-powertools/batch', '@aws-lambda-powertools/idempotency', '@aws-sdk/client-dynamodb'];
await run(packages, async (event, remainingMs) => {
  const end = performance.now() + remainingMs;
  const context = { getRemainingTimeInMillis: () => Math.max(0, Math.floor(end - performance.now())) };
  try {
    return (await handler(event, context)).batchItemFailures.map((failure) => failure.itemIdentifier);
  } catch (error) {
    // Powertools throws when every message of a batch failed.
    process.stderr.write(`${error.name}: ${error.message}\n`);
    return event.Records.map((record) => record.messageId);
  }
});
