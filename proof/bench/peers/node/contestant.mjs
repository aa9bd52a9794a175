// What the contestants in Node.js share: how they are spoken to, and the handler.
//
// One line of JSON in, one out, for each batch: see proof/bench/src/contestant/mod.rs.

import { existsSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const LOOK_MS = 5;

let ran = 0;
const say = (answer) => process.stdout.write(`claimant-bench ${JSON.stringify(answer)}\n`);

// Says that the handler has begun, and blocks until it is told how it ends: see proof/bench/src/contestant/told.rs.
const follow = (name) => {
  say({ began: name });
  const told = `${process.env.CLAIMANT_BENCH_TOLD}/${name}`;
  const clock = new Int32Array(new SharedArrayBuffer(4));
  for (;;) {
    const how = existsSync(told) ? readFileSync(told, 'utf8') : '';
    if (how === 'complete') return;
    if (how === 'fail') throw new Error('the handler was told to fail');
    Atomics.wait(clock, 0, 0, LOOK_MS);
  }
};

// The instant handler.
export const handle = (order) => {
  ran += 1;
  if (order.told !== undefined) follow(order.told);
};

const locked = JSON.parse(readFileSync(new URL('package-lock.json', import.meta.url))).packages;
const version = (name) => `${name} ${locked[`node_modules/${name}`].version}`;

// Does the batches that come in. `invoke` gets an event and what is left of the invocation, and returns the ids of the
// messages that failed.
export const run = async (packages, invoke) => {
  say({ ready: [...packages.map(version), `Node.js ${process.versions.node}`].join(', ') });
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    const { event, remaining_ms: remainingMs } = JSON.parse(line);
    ran = 0;
    const cpu = process.cpuUsage();
    const wall = process.hrtime.bigint();
    const failed = await invoke(event, remainingMs);
    const wallNs = Number(process.hrtime.bigint() - wall);
    const { user, system } = process.cpuUsage(cpu);
    say({ wall_ns: wallNs, cpu_ns: (user + system) * 1_000, ran, failed });
  }
};
