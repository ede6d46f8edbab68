import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EventLoopLag, type Lag } from '../event-loop-lag.js';
import type { Turn } from '../load/conversations.js';
import { type OnResult, openLoop } from '../load/open-loop.js';
import type { Addresses } from './addresses.js';
import type { Children } from './children.js';
import { Measurement, type PolicyResult, type Weights } from './measurement.js';
import { withSourceAddress } from './nearest.js';
import type { Progress } from './progress.js';
import {
  CLIENT_TIMEOUT_MS,
  clientTurns,
  engines,
  frontends,
  MODEL,
  rttMs,
  SCALE,
  type Span,
} from './scenario.js';

const ENGINE = fileURLToPath(new URL('../engine/main.js', import.meta.url));

export interface PhaseContext {
  readonly name: string;
  readonly folder: string;
  readonly envoyBinary: string;
  readonly addresses: Addresses;
  readonly children: Children;
  readonly signal: AbortSignal;
}

/** Fresh engines, with nothing in their caches. */
export async function startEngines({ children, addresses, signal }: PhaseContext): Promise<void> {
  const started = engines.map(({ id, kind }) => {
    const delays = frontends.flatMap((frontend) => [
      '--rtt-ms',
      `${frontend.sourceAddress}=${rttMs[frontend.id]![id]}`,
    ]);
    const what = ['--id', id, '--kind', kind, '--speed', String(SCALE), '--model', MODEL];
    const args = [ENGINE, '--listen', addresses.engine[id]!, ...what, ...delays];
    return children
      .start(`engine ${id}`, process.execPath, args)
      .ready(`http://${addresses.engine[id]}/health`, signal);
  });
  await Promise.all(started);
}

/** One Envoy per frontend, each with a source address of its own; waits until `readyUrl` answers 2xx. */
export async function startEnvoys(
  { children, folder, envoyBinary, signal }: PhaseContext,
  bootstrapOf: (frontendId: string) => Promise<object>,
  readyUrl: (frontendId: string) => string,
): Promise<void> {
  const files = await Promise.all(
    frontends.map(async ({ id, sourceAddress }) => {
      const file = join(folder, `envoy-${id}.json`);
      writeFileSync(file, JSON.stringify(withSourceAddress(await bootstrapOf(id), sourceAddress)));
      return file;
    }),
  );
  // From here on nothing waits before all are started: what is not started by an end of the demo never is.
  signal.throwIfAborted();
  const started = frontends.map(({ id }, index) => {
    const options = ['--concurrency', '1', '--disable-hot-restart', '--log-level', 'warning'];
    return children
      .start(`envoy ${id}`, envoyBinary, ['-c', files[index]!, ...options])
      .ready(readyUrl(id), signal);
  });
  await Promise.all(started);
}

export interface PhaseResult {
  readonly policy: PolicyResult;
  /** Event-loop delay at the 99th percentile by process, while it was measured. */
  readonly lagMs: ReadonlyMap<string, number>;
}

/** Sends the demo's load through the Envoys; the first seconds fill the caches and are not measured. */
export async function measure(
  context: PhaseContext,
  span: Span,
  weightsOf: (frontendId: string) => Weights,
  progress: Progress,
): Promise<PhaseResult> {
  const measurement = new Measurement(span.seconds);
  const lags = new HarnessLags(context.addresses);
  const whenWarm = setTimeout(() => void lags.reset(), span.warmupSeconds * 1000);
  progress.begin(context.name, span);
  try {
    await sendLoad(context, 'demo', span.warmupSeconds + span.seconds, (frontendId, turn) => {
      const weights = weightsOf(frontendId);
      progress.sent();
      return (result) => {
        progress.ended(result.end);
        if (turn.atSeconds >= span.warmupSeconds) measurement.add(frontendId, turn, weights, result);
      };
    });
    context.signal.throwIfAborted();
    return { policy: measurement.result(), lagMs: await lags.read() };
  } finally {
    clearTimeout(whenWarm);
    lags.close();
    progress.end();
  }
}

/** The clients of all frontends. */
export async function sendLoad(
  { addresses, signal }: PhaseContext,
  name: string,
  seconds: number,
  onTurn: (frontendId: string, turn: Turn) => OnResult,
): Promise<void> {
  await Promise.all(
    frontends.map((frontend) => {
      const { id } = frontend;
      return openLoop(
        {
          url: `http://${addresses.frontend[id]}`,
          model: MODEL,
          timeoutMs: CLIENT_TIMEOUT_MS,
          turns: clientTurns(frontend, name, seconds),
          onTurn: (turn) => onTurn(id, turn),
        },
        signal,
      );
    }),
  );
}

/** Event-loop delays of all our processes: this one, with the clients, and the engines. */
class HarnessLags {
  readonly #own = new EventLoopLag();
  readonly #engines: readonly (readonly [string, string])[];

  constructor(addresses: Addresses) {
    this.#engines = engines.map(({ id }) => [`engine ${id}`, `http://${addresses.engine[id]}/simulator/lag`]);
  }

  async reset(): Promise<void> {
    this.#own.reset();
    await Promise.all(this.#engines.map(([, url]) => fetch(url, { method: 'DELETE' }).catch(() => {})));
  }

  async read(): Promise<Map<string, number>> {
    const lags = new Map([['demo and clients', this.#own.read().p99Ms]]);
    for (const [name, url] of this.#engines) {
      const { p99Ms } = (await (await fetch(url)).json()) as Lag;
      lags.set(name, p99Ms);
    }
    return lags;
  }

  close(): void {
    this.#own.close();
  }
}
