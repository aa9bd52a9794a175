// Powertools for AWS Lambda (TypeScript): batch and idempotency, put together as its documentation shows.
// JavaScript, because the oldest node that Lambda offers runs no TypeScript by itself.
//
// One line of JSON in, one out, for each batch: see proof/bench/src/contestant/mod.rs.

import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { BatchProcessor, EventType, processPartialResponse } from '@aws-lambda-powertools/batch';
import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency';
import { DynamoDBPersistenceLayer } from '@aws-lambda-powertools/idempotency/dynamodb';

const REMAINING_MS = 900_000;

const processor = new BatchProcessor(EventType.SQS);
const persistenceStore = new DynamoDBPersistenceLayer({ tableName: process.env.CLAIMANT_BENCH_TABLE });
const config = new IdempotencyConfig({ eventKeyJmesPath: 'powertools_json(body).order_id' });
let ran = 0;

const processRecord = makeIdempotent(
  async (record) => {
    JSON.parse(record.body);
    ran += 1;
  },
  { persistenceStore, config },
);

const handler = async (event, context) => {
  config.registerLambdaContext(context);
  return processPartialResponse(event, processRecord, processor, { context });
};

const say = (answer) => process.stdout.write(`claimant-bench ${JSON.stringify(answer)}\n`);

const locked = JSON.parse(readFileSync(new URL('package-lock.json', import.meta.url))).packages;
const version = (name) => `${name} ${locked[`node_modules/${name}`].version}`;
const names = ['@aws-lambda-powertools/batch', '@aws-lambda-powertools/idempotency', '@aws-sdk/client-dynamodb'];
say({ ready: [...names.map(version), `Node.js ${process.versions.node}`].join(', ') });

const context = { getRemainingTimeInMillis: () => REMAINING_MS };
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const { event } = JSON.parse(line);
  ran = 0;
  const cpu = process.cpuUsage();
  const wall = process.hrtime.bigint();
  let failed;
  try {
    failed = (await handler(event, context)).batchItemFailures.length;
  } catch (error) {
    // Powertools throws when every message of a batch failed.
    process.stderr.write(`${error.name}: ${error.message}\n`);
    failed = event.Records.length;
  }
  const wallNs = Number(process.hrtime.bigint() - wall);
  const { user, system } = process.cpuUsage(cpu);
  say({ wall_ns: wallNs, cpu_ns: (user + system) * 1_000, ran, failed });
}
