// sqs-consumer, with claims in DynamoDB as a careful user writes them by hand: the same requests and conditions as the Rust
// loop by hand (proof/bench/src/hand.rs). sqs-consumer polls, so it gets its messages from a stand-in of the SQS client that
// answers at once, ten messages at most, as SQS does; what it deletes has succeeded.

import { randomUUID } from 'node:crypto';
import { ConditionalCheckFailedException, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DeleteCommand, DynamoDBDocumentClient, PutCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb';
import { Consumer } from 'sqs-consumer';
import { handle, run } from './contestant.mjs';

const RECEIVED_MAX = 10;
const WINDOW_S = 15 * 86_400;

const table = process.env.CLAIMANT_BENCH_TABLE;
const client = DynamoDBDocumentClient.from(new DynamoDBClient({}));
const names = { '#status': 'status' };
const ours = (owner) => ({
  ConditionExpression: '#owner = :owner AND #status = :in_progress',
  ExpressionAttributeNames: { ...names, '#owner': 'owner' },
  ExpressionAttributeValues: { ':owner': owner, ':in_progress': 'IN_PROGRESS' },
});

let leaseMs = 0;

// Returns the owner of the claim; nothing if the order is done.
const claim = async (id) => {
  const now = Date.now();
  const owner = randomUUID();
  try {
    await client.send(
      new PutCommand({
        TableName: table,
        Item: { id, status: 'IN_PROGRESS', owner, lease_until: now + leaseMs },
        ConditionExpression:
          'attribute_not_exists(id) OR (#status = :in_progress AND lease_until < :now) OR expires_at < :now_s',
        ExpressionAttributeNames: names,
        ExpressionAttributeValues: { ':in_progress': 'IN_PROGRESS', ':now': now, ':now_s': Math.floor(now / 1_000) },
        ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
      }),
    );
    return owner;
  } catch (error) {
    if (!(error instanceof ConditionalCheckFailedException)) throw error;
    if (error.Item?.status?.S === 'COMPLETED') return undefined;
    throw new Error('someone else is at it');
  }
};

const complete = (id, owner) => {
  const guarded = ours(owner);
  const expiresAt = Math.floor(Date.now() / 1_000) + WINDOW_S;
  return client.send(
    new UpdateCommand({
      TableName: table,
      Key: { id },
      UpdateExpression: 'SET #status = :completed, expires_at = :expires_at REMOVE lease_until',
      ...guarded,
      ExpressionAttributeValues: {
        ...guarded.ExpressionAttributeValues,
        ':completed': 'COMPLETED',
        ':expires_at': expiresAt,
      },
    }),
  );
};

const release = (id, owner) => client.send(new DeleteCommand({ TableName: table, Key: { id }, ...ours(owner) }));

const fields = process.env.CLAIMANT_BENCH_KEY === undefined ? ['order_id'] : ['order_id', 'line'];
const keyOf = (order) => {
  const missing = fields.find((field) => order[field] === undefined);
  if (missing !== undefined) throw new Error(`the order has no ${missing}`);
  return fields.map((field) => order[field]).join('/');
};

// sqs-consumer deletes the message that its handler returns.
const handleMessage = async (message) => {
  const order = JSON.parse(message.Body);
  const key = keyOf(order);
  const owner = await claim(key);
  if (owner === undefined) return message;
  try {
    await handle(order);
  } catch (error) {
    await release(key, owner);
    throw error;
  }
  await complete(key, owner);
  return message;
};

// The stand-in of the SQS client: the batch, ten at a time, and then nothing until the next one is there.
const batch = { messages: [], deleted: new Set(), received: () => {}, done: () => {} };
const sqs = {
  send: async (command) => {
    switch (command.constructor.name) {
      case 'ReceiveMessageCommand': {
        if (batch.messages.length === 0) {
          batch.done();
          await new Promise((resolve) => {
            batch.received = resolve;
          });
        }
        return { Messages: batch.messages.splice(0, Math.min(RECEIVED_MAX, command.input.MaxNumberOfMessages)) };
      }
      case 'DeleteMessageCommand':
        batch.deleted.add(command.input.ReceiptHandle);
        return {};
      default:
        throw new Error(`the stand-in of SQS has no ${command.constructor.name}`);
    }
  },
};

const consumer = Consumer.create({
  queueUrl: 'https://sqs.us-east-1.amazonaws.com/000000000000/orders',
  batchSize: RECEIVED_MAX,
  strictReturn: true,
  handleMessage,
  sqs,
});
for (const event of ['error', 'processing_error', 'timeout_error']) {
  consumer.on(event, (error) => process.stderr.write(`${error.name}: ${error.message}\n`));
}
consumer.start();

await run(['sqs-consumer', '@aws-sdk/client-dynamodb'], async (event, remainingMs) => {
  leaseMs = remainingMs;
  batch.deleted.clear();
  const done = new Promise((resolve) => {
    batch.done = resolve;
  });
  batch.messages.push(
    ...event.Records.map((record) => ({
      MessageId: record.messageId,
      ReceiptHandle: record.receiptHandle,
      Body: record.body,
      Attributes: record.attributes,
    })),
  );
  batch.received();
  await done;
  return event.Records.filter((record) => !batch.deleted.has(record.receiptHandle)).map((record) => record.messageId);
});
