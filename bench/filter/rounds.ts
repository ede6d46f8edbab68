import { cpuNs } from './cpu.js';
import { type Load, type LoadResult, runLoad } from './load.js';
import type { Variant, VariantName } from './variants.js';
import type { World } from './world.js';

/** Events of a streamed answer. */
export const CHUNKS = 200;
/** Connections for the CPU of whole answers, of streams, and requests in flight for latency. */
const CONNECTIONS = 16;
const STREAMS = 48;

export interface Effort {
  readonly rounds: number;
  /** Requests in a slice with the smallest body, for CPU and for latency. */
  readonly requests: number;
  readonly latencyRequests: number;
}

/** One value for each round. */
export type Series = Readonly<Partial<Record<VariantName, readonly number[]>>>;

export interface Measured {
  readonly rounds: number;
  /** CPU of Envoy, and of the picker where there is one, per request in microseconds. */
  readonly cpuMicros: Series;
  /** The same for requests whose answer comes in CHUNKS events. */
  readonly streamMicros: Series;
  /** Median latency with one request in flight, in microseconds. */
  readonly p50Micros: Series;
}

type Kind = 'cpuMicros' | 'streamMicros' | 'p50Micros';

/**
 * Measures all variants in short slices that take turns, so that a slow spell of the machine hits all of them alike.
 * In each round the floor comes before and after the variants that are compared with it, which change places.
 */
export async function measureRounds(
  world: World,
  variants: readonly Variant[],
  effort: Effort,
  { signal, progress }: { readonly signal: AbortSignal; readonly progress: (line: string) => void },
): Promise<Measured> {
  for (const variant of variants) {
    await slice(world, variant, requestsOf(variant, effort.requests), CONNECTIONS);
  }
  const measured = { cpuMicros: {}, streamMicros: {}, p50Micros: {} } as Record<
    Kind,
    Record<string, number[]>
  >;
  for (let round = 0; round < effort.rounds; round++) {
    const values = new Map<string, number[]>();
    for (const { kind, variant } of orderOf(variants, round)) {
      signal.throwIfAborted();
      const value = await measure(world, variant, kind, effort);
      const key = `${kind} ${variant.name}`;
      values.set(key, [...(values.get(key) ?? []), value]);
    }
    for (const [key, slices] of values) {
      const [kind, name] = key.split(' ') as [Kind, VariantName];
      const mean = slices.reduce((sum, value) => sum + value, 0) / slices.length;
      measured[kind][name] = [...(measured[kind][name] ?? []), mean];
    }
    progress(`round ${round + 1} of ${effort.rounds}`);
  }
  return { rounds: effort.rounds, ...measured };
}

export interface Turn {
  readonly kind: Kind;
  readonly variant: Variant;
}

/** The slices of a round. */
function orderOf(variants: readonly Variant[], round: number): Turn[] {
  const turns: Turn[] = [];
  for (const kind of ['cpuMicros', 'streamMicros', 'p50Micros'] as const) {
    for (const floor of variants.filter(({ name, floor }) => name === floor)) {
      if (kind === 'streamMicros' && floor.name !== 'none') continue;
      const others = variants.filter((variant) => variant.floor === floor.name && variant !== floor);
      const first = round % others.length;
      const order = [floor, ...others.slice(first), ...others.slice(0, first), floor];
      turns.push(...order.map((variant) => ({ kind, variant })));
    }
  }
  return turns;
}

async function measure(world: World, variant: Variant, kind: Kind, effort: Effort): Promise<number> {
  switch (kind) {
    case 'cpuMicros':
      return (await slice(world, variant, requestsOf(variant, effort.requests), CONNECTIONS)).micros;
    case 'streamMicros':
      return (await slice(world, variant, STREAMS, STREAMS, CHUNKS)).micros;
    case 'p50Micros':
      return (await slice(world, variant, requestsOf(variant, effort.latencyRequests), 1)).result.p50;
  }
}

/** Large bodies take long enough to be told from noise with fewer requests. */
function requestsOf({ load }: Variant, requests: number): number {
  return load.bodyBytes > 50_000 ? Math.ceil(requests / 4) : requests;
}

async function slice(
  { envoyPid, loadCommand }: World,
  { name, load, pickerPid }: Variant,
  requests: number,
  connections: number,
  chunks = 0,
): Promise<{ readonly micros: number; readonly result: LoadResult }> {
  const used = () => cpuNs(envoyPid) + (pickerPid === undefined ? 0 : cpuNs(pickerPid));
  const full: Load = { ...load, requests, connections, chunks };
  const before = used();
  const result = await runLoad(loadCommand, full).catch((error: Error) => {
    throw new Error(`${name}: ${error.message}`);
  });
  return { micros: (used() - before) / 1000 / requests, result };
}
