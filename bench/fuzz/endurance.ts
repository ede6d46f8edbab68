import { filterModule } from '../../simulator/filter-host/build.js';
import { Host, type Stream, type Vm } from '../../simulator/filter-host/host.js';
import { sketch } from '../../test/filter/snapshots.js';
import { encodeSnapshot } from '../../wire/snapshot-writer.js';
import type { Random } from './random.js';

/** Replicas of 200 engines: a snapshot of about 1 MiB. */
const ENGINES = 200;
const REPLICAS = 100;
const VARIANTS = 4;
const REQUESTS_PER_INSTALL = 1_000;
const IN_FLIGHT = 100;
/** Few, because the counters of each replica that ever gets a request take room, too. */
const CONVERSATIONS = 200;
const MOST_BYTES = 8 << 20;

/**
 * Sends requests that end in any way, with an install of a large snapshot after every thousand; throws when memory grows
 * after the first tenth. Resolves to the number of installs.
 */
export function endure(requests: number, random: Random): number {
  const vm = new Host(filterModule()).startVm({ frontendId: 'west', readBodies: true });
  const snapshots = Array.from({ length: VARIANTS }, (_, at) => largeSnapshot(at));
  const open: Stream[] = [];
  let installs = 0;
  let settled = 0;
  const warmUp = Math.max(2 * VARIANTS, Math.ceil(requests / REQUESTS_PER_INSTALL / 10));
  for (let i = 0; i < requests; i++) {
    if (i % REQUESTS_PER_INSTALL === 0) {
      vm.host.nowMs += 2_000;
      vm.host.logs.length = 0;
      // Enough for the filter to find those that end without a word within some installs.
      for (let tick = 0; tick < 4; tick++) vm.tick();
      vm.answer(200, snapshots[installs % VARIANTS]);
      installs++;
      if (installs === warmUp) settled = vm.memoryBytes;
      else if (installs > warmUp && vm.memoryBytes !== settled)
        throw new Error(`memory went from ${settled} to ${vm.memoryBytes} bytes`);
    }
    open.push(begin(vm, i, random));
    if (open.length > IN_FLIGHT) finish(open.splice(random.below(open.length), 1)[0]!, random);
  }
  if (vm.memoryBytes > MOST_BYTES) throw new Error(`a VM takes ${vm.memoryBytes} bytes`);
  console.log(
    `endurance: ${vm.memoryBytes / 2 ** 20} MiB with a snapshot of ${(snapshots[0]!.length / 2 ** 20).toFixed(2)} MiB`,
  );
  return installs;
}

function begin(vm: Vm, index: number, random: Random): Stream {
  const headers: Record<string, string> =
    random.below(8) === 0 ? {} : { 'x-wardrop-model': 'm', 'x-session-id': `u${index % CONVERSATIONS}` };
  const stream = vm.request(headers, { ended: random.below(20) === 0 });
  if (!stream.forwarded && !stream.reply)
    stream.send(`{"model":"m","user":"u${index % CONVERSATIONS}","stream":true}`, true);
  return stream;
}

function finish(stream: Stream, random: Random): void {
  if (stream.forwarded && random.below(10) > 0) {
    stream.respond(random.oneOf([200, 200, 200, 404, 503]), {
      attempts: 1 + random.below(stream.retries + 1),
    });
    if (random.below(2) === 0) stream.responseBody('data: {}\n\n', random.below(2) === 0);
  }
  if (random.below(100) === 0) stream.vanish();
  else stream.end();
}

/** A tenth of the engines are others in each variant, so that old ones have to be forgotten. */
function largeSnapshot(variant: number): Uint8Array {
  const view = sketch(
    Array.from({ length: ENGINES }, () => ({ weight: 1, replicas: REPLICAS })),
    { version: variant + 1 },
  );
  const engines = view.engines.map((engine, at) =>
    at % 10 > 0 ? engine : { ...engine, id: `${engine.id}-${variant % 2}` },
  );
  return encodeSnapshot({ ...view, engines });
}
