import { filterModule } from '../../simulator/filter-host/build.js';
import { type Headers, Host, type Vm } from '../../simulator/filter-host/host.js';
import { deliver, sketch } from '../../test/filter/snapshots.js';
import { CLIENT_STEERING_HEADERS, KEY_HEADERS, MODEL_HEADER } from '../../wire/names.js';
import type { Random } from './random.js';

const names = [
  ...KEY_HEADERS,
  ...CLIENT_STEERING_HEADERS,
  MODEL_HEADER,
  ...[
    'x-tenant',
    'x-region',
    'x-stainless-retry-count',
    'content-type',
    'content-encoding',
    'content-length',
  ],
  ...[':path', ':method', 'x', '', 'x-session-idx', 'x-wardrop', 'accept', 'X-SESSION-ID'],
];
const values = [
  ...[
    '',
    'm',
    'n',
    'a',
    'eu',
    'gzip',
    'application/json',
    'multipart/form-data; boundary=x',
    '0',
    '1',
    '99999999999999999999',
  ],
  ...['127.0.0.1:9901', '\u0000\u00ff', 'é€🙂', '"\\\r\n{}', 'GET', 'OPTIONS', '/v1/models', 'x'.repeat(300)],
];

/** By then, everything that is allocated once has been. */
const WARM_UP = 3_000;
/** One in so many is sent a second time. */
const SENT_AGAIN = 4;

/**
 * Sends requests with any headers through the whole filter: it must not trap, must name engines of the pool only, must let no
 * steering header of the client through and must map equal keys alike. Resolves to the number that were sent on.
 */
export function fuzzHeaders(inputs: number, random: Random): number {
  const vm = new Host(filterModule()).startVm({
    frontendId: 'west',
    tenantHeader: 'x-tenant',
    readBodies: true,
  });
  deliver(vm, fleet());
  let before = Number.POSITIVE_INFINITY;
  let sentOn = 0;
  for (let i = 0; i < inputs; i++) {
    const headers = anyHeaders(random);
    const ended = random.below(3) === 0;
    const sent = send(vm, headers, ended);
    if (sent !== undefined) sentOn++;
    if (sent?.reason === 'planned' && i % SENT_AGAIN === 0) {
      const again = send(vm, headers, ended);
      if (again?.endpoint !== sent.endpoint)
        throw new Error(`another endpoint for an equal key: ${JSON.stringify(headers)}`);
    }
    if (i === WARM_UP) before = vm.memoryBytes;
    if (i % 4_096 === 0) {
      vm.host.nowMs += 100;
      vm.host.logs.length = 0;
      vm.tick();
    }
  }
  if (vm.memoryBytes > before) throw new Error('memory has grown');
  return sentOn;
}

function fleet() {
  return sketch([{ weight: 1, replicas: 2 }, { weight: 2 }, { weight: 1 }], {
    needs: [{ id: 'eu', when: { kind: 'header', name: 'x-region', value: 'eu' } }],
    models: [
      { name: 'm', pool: 0, needs: [0], pools: [0, 1] },
      { name: 'n', pool: 1 },
    ],
    pools: [
      { ...sketch([{ weight: 1 }, { weight: 2 }, { weight: 1 }]).pools[0]! },
      {
        id: 'eu',
        cluster: 'pool-eu',
        engines: [1],
        segments: [{ start: 0, owner: 1, backup: -1 }],
        retryRatio: 0.2,
        shedFraction: 0.1,
      },
    ],
  });
}

function anyHeaders(random: Random): Headers {
  return Array.from({ length: random.below(9) }, (): [string, string] => {
    const name = random.oneOf(names);
    const value = random.below(4) === 0 ? String.fromCharCode(32 + random.below(90)) : random.oneOf(values);
    return [name, value];
  });
}

/** Where it went first, and why; undefined when the filter has answered it. */
interface Sent {
  readonly endpoint: string | undefined;
  readonly reason: string | undefined;
}

function send(vm: Vm, headers: Headers, ended: boolean): Sent | undefined {
  const complain = (what: string) => new Error(`${what}: ${JSON.stringify(headers)}`);
  const stream = vm.request(headers, { ended });
  if (!stream.forwarded && stream.reply === undefined) stream.send('{"model":"m","user":"u"}', true);
  if (stream.reply !== undefined) {
    JSON.parse(stream.reply.body);
    stream.end();
    return undefined;
  }
  if (!stream.forwarded) throw complain('neither sent on nor answered');
  const cluster = stream.header('x-wardrop-cluster');
  if (cluster !== 'pool-m' && cluster !== 'pool-eu') throw complain('another cluster');
  for (const endpoint of stream.endpoints) {
    if (!/^10\.0\.[012]\.[01]:8000$/.test(endpoint)) throw complain('another endpoint');
    if (cluster === 'pool-eu' && endpoint !== '10.0.1.0:8000')
      throw complain('an engine that is not eligible');
  }
  const carried = headers.some(([name, value]) => name === 'x-region' && value === 'eu');
  if (carried && cluster !== 'pool-eu') throw complain('a need that is not met');
  const spoofed = stream.requestHeaders.filter(
    ([name]) => CLIENT_STEERING_HEADERS.includes(name) && !written.has(name),
  );
  if (spoofed.length > 0) throw complain('a steering header of the client');
  const [endpoint] = stream.endpoints;
  const { reason } = stream.respond(200).decision;
  stream.end();
  return { endpoint, reason };
}

const written = new Set(['x-wardrop-cluster', 'x-gateway-destination-endpoint', 'x-envoy-max-retries']);
