// Both modules under the same host in this process, where their difference is not lost in Envoy's noise.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Headers } from '../../simulator/filter-host/host.js';
import { sketch } from '../../test/filter/snapshots.js';
import { encodeFilterConfig } from '../../wire/filter-config.js';
import { encodeSnapshot } from '../../wire/snapshot-writer.js';
import { ROUTE_RETRIES } from '../../xds-server/xds/resources/routes.js';
import { HEADER_MODEL } from './fleet.js';
import { inAnotherOrder } from './function-orders.js';
import { type Exchange, ModuleHost } from './module-host.js';
import { type Estimate, estimate, median } from './statistics.js';

export const FILTER = fileURLToPath(new URL('../../filter/wardrop.wasm', import.meta.url));
/** As many as the C filter picks among. */
const ENGINES = 100;
const KEYS = 64;
/** Requests between two ticks: so few for each engine that the tokens of every answer are read. */
const BETWEEN_TICKS = 2 * KEYS;
const TICKS = 80;
/**
 * Orders of their functions in which modules are timed, the first as they are built: where V8 puts the code makes more of a
 * difference than what it does, and no order is better than another on every machine.
 */
const ORDERS = 9;
/** Until the retry budget has earned what grants two retries to every request, as in any traffic that lasts. */
const SETTLING_TICKS = 300;
export const FRONTEND_ID = 'west';

const ANSWER = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1_700_000_000,
  model: 'm',
  choices: [
    { index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop', logprobs: null },
  ],
  usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 },
});

function requestHeaders(key: string): Headers {
  return [
    [':authority', 'engines'],
    [':path', '/v1/chat/completions'],
    [':method', 'POST'],
    [':scheme', 'http'],
    ['user-agent', 'loadgen'],
    ['accept', '*/*'],
    ['x-tenant', 'acme'],
    ['x-session-id', key],
    ['x-wardrop-model', HEADER_MODEL],
    ['x-conversation-id', key],
    ['content-type', 'application/json'],
    ['content-length', '256'],
    ['x-forwarded-for', '127.0.0.1'],
    ['x-forwarded-proto', 'http'],
    ['x-request-id', '3a2b1f0e-9d8c-4b7a-a6f5-e4d3c2b1a098'],
  ];
}

/** What Envoy hands over of one of the bench's requests with its key in a header, and of the answer. */
export const exchange: Exchange = {
  requestHeaders: Array.from({ length: KEYS }, (_, index) => requestHeaders(`conv-${1000 + 7919 * index}`)),
  body: new Uint8Array(256),
  responseHeaders: [
    [':status', '200'],
    ['content-type', 'application/json'],
    ['date', 'Thu, 01 Jan 2026 00:00:00 GMT'],
    ['content-length', '250'],
    ['x-envoy-upstream-service-time', '0'],
    ['x-envoy-attempt-count', '1'],
  ],
  answer: [Buffer.from(ANSWER)],
};

export interface ModuleTimes {
  readonly filterMicros: Estimate;
  readonly cMicros: Estimate;
  readonly ratio: Estimate;
}

/** Host calls of one request, by name; whole numbers unless a call is made for some requests only. */
export type Calls = Readonly<Record<string, number>>;

export function loadFilter(counting = false, module = shippedFilter()): ModuleHost {
  const host = new ModuleHost(module, counting);
  host.configure(
    encodeFilterConfig({
      frontendId: FRONTEND_ID,
      readBodies: true,
      maxBodyBytes: 8 << 20,
      tenantHeader: 'x-tenant',
      routeRetries: ROUTE_RETRIES,
    }),
  );
  host.tick();
  host.answer(snapshotOf(ENGINES, 2));
  return host;
}

function shippedFilter(): WebAssembly.Module {
  return moduleOf(readFileSync(FILTER));
}

export function moduleOf(wasm: Uint8Array): WebAssembly.Module {
  return new WebAssembly.Module(wasm);
}

export function loadC(module: WebAssembly.Module, counting = false): ModuleHost {
  const host = new ModuleHost(module, counting);
  host.configure(`${ENGINES},0,${BETWEEN_TICKS},8000`);
  return host;
}

/** Times both, in each of several orders of their functions so many batches; intervals are over orders. */
export function timeModules(cFile: string, batches: number): ModuleTimes {
  const filter = readFileSync(FILTER);
  const c = readFileSync(cFile);
  const times = Array.from({ length: ORDERS }, (_, order) =>
    order === 0
      ? timePair(filter, c, batches)
      : timePair(inAnotherOrder(filter, order), inAnotherOrder(c, order), batches),
  );
  const middle = (of: (times: PairTimes) => number) =>
    estimate(ORDERS, (chosen) => median(chosen.map((order) => of(times[order]!))));
  return {
    filterMicros: middle(({ filter }) => filter),
    cMicros: middle(({ c }) => c),
    ratio: middle(({ filter, c }) => filter / c),
  };
}

interface PairTimes {
  readonly filter: number;
  readonly c: number;
}

/** Times batches of both in turn, by the CPU that they use: other processes get in the way less than on the clock. */
function timePair(filter: Uint8Array, c: Uint8Array, batches: number): PairTimes {
  const hosts = [loadFilter(false, moduleOf(filter)), loadC(moduleOf(c))];
  const times = hosts.map((host) => ({ batch: batchOf(host), micros: [] as number[] }));
  for (const { batch } of times) for (let i = 0; i < 5; i++) batch();
  for (let number = 0; number < batches; number++) {
    for (const { batch, micros } of number % 2 ? times : [...times].reverse()) micros.push(batch());
  }
  const [ofFilter, ofC] = times.map(({ micros }) => median(micros)) as [number, number];
  return { filter: ofFilter, c: ofC };
}

/** Serves many requests with ticks between them; returns the microseconds of a request, ticks left out. */
function batchOf(host: ModuleHost): () => number {
  const serve = host.server(exchange);
  return () => {
    let micros = 0;
    for (let tick = 0; tick < TICKS; tick++) {
      host.tick();
      const started = process.cpuUsage();
      serve(BETWEEN_TICKS);
      const { user, system } = process.cpuUsage(started);
      micros += user + system;
    }
    return micros / TICKS / BETWEEN_TICKS;
  };
}

/** Host calls that a module makes for a request whose answer is read for its tokens, those of its ticks left out. */
export function countCalls(host: ModuleHost): Calls {
  const serve = host.server(exchange);
  for (let tick = 0; tick < SETTLING_TICKS; tick++) {
    serve(BETWEEN_TICKS);
    host.tick();
  }
  host.calls.clear();
  serve(BETWEEN_TICKS);
  return Object.fromEntries([...host.calls].map(([name, calls]) => [name, calls / BETWEEN_TICKS]));
}

/** A snapshot with one pool of so many engines, which serves the model of the exchanges. */
export function snapshotOf(engines: number, replicas: number, version = 1): Uint8Array {
  const sketches = Array.from({ length: engines }, (_, index) => ({ weight: 1 + (index % 7), replicas }));
  const models = [{ name: HEADER_MODEL, pool: 0 }];
  return encodeSnapshot(sketch(sketches, { models, frontendId: FRONTEND_ID, version }));
}
