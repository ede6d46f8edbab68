import { gzipSync } from 'node:zlib';
import { id64 } from '../../wire/hash.js';
import { noEngineUsage, noPoolUsage, noVmUsage, type UsageReport } from '../../wire/usage-report.js';
import { loadConfig } from '../../xds-server/config/load.js';
import { type KnownSignals, RecordedSignals } from '../../xds-server/control/recording/recorded-signals.js';
import type { Recorded } from '../../xds-server/control/recording/recording.js';
import { RecordingReader } from '../../xds-server/control/recording/recording-reader.js';
import { RecordingWriter } from '../../xds-server/control/recording/recording-writer.js';
import { Signals } from '../../xds-server/signals/signals.js';

const FRONTENDS = 100;
const ENGINES = 1_000;
const MODELS = 10;
/** Each frontend sends to a tenth of the engines, those of one model. */
const SECONDS = 20;

/** What it takes to begin a recording of a large fleet, in processor time. */
export interface SavingCost {
  /** To take what is known, at one go; and the most for a piece of it to become text, of which there are many. */
  readonly saveMs: number;
  readonly pieceMs: number;
  readonly textBytes: number;
  readonly fileBytes: number;
  readonly restoreMs: number;
}

export function measureSaving(): SavingCost {
  const signals = new RecordedSignals(largeConfig(), [], 0, () => {});
  for (let second = 1; second <= SECONDS; second++) {
    for (let frontend = 0; frontend < FRONTENDS; frontend++) {
      signals.acceptReport(`f${frontend}`, 'n', reportOf(frontend, second), second * 1_000 + frontend);
    }
    signals.evaluate(second * 1_000 + 500);
  }
  signals.known(0);
  const [known, saveMs] = timed(() => signals.known(SECONDS * 1_000 + 900));
  const lines = new RecordingWriter().lines(known);
  let text = '';
  let pieceMs = 0;
  for (;;) {
    const [{ done, value }, ms] = timed(() => lines.next());
    if (done === true) break;
    text += value;
    pieceMs = Math.max(pieceMs, ms);
  }
  const reader = new RecordingReader();
  const [, restoreMs] = timed(() => {
    const read = text.split('\n').map((line) => (line === '' ? undefined : reader.read(line)));
    const { config, saved } = read.find(isKnown)!;
    new Signals(config, [], 0).restore(saved);
  });
  return { saveMs, pieceMs, textBytes: text.length, fileBytes: gzipSync(text).length, restoreMs };
}

function isKnown(recorded: Recorded | undefined): recorded is KnownSignals {
  return recorded?.kind === 'known';
}

/** In milliseconds of processor time. */
function timed<T>(act: () => T): [T, number] {
  const started = process.cpuUsage();
  const result = act();
  const { user, system } = process.cpuUsage(started);
  return [result, (user + system) / 1_000];
}

function largeConfig() {
  const frontends = numbers(FRONTENDS).map((at) => `{id: f${at}, region: r}`);
  const engines = numbers(ENGINES).map(
    (at) => `{id: e${at}, region: r, models: [m${at % MODELS}], profile: p, endpoints: ["${addressOf(at)}"]}`,
  );
  const row = `{${numbers(ENGINES).map((at) => `e${at}: 10`)}}`;
  return loadConfig('fleet.yaml', () =>
    [
      `frontends: [${frontends}]`,
      `engines: [${engines}]`,
      `network: {rttMs: {${numbers(FRONTENDS).map((at) => `f${at}: ${row}`)}}}`,
      'profiles: {p: {work: {secondsPerRequest: 0.1}, ttft: {baseSeconds: 0.05, queueSeconds: 0.01}, tbot: {baseSeconds: 0.01, kappa: 0.5}, maxFittedRho: 0.95}}',
    ].join('\n'),
  );
}

/** Of two VMs that have sent a request a second to each engine of one model, and measured the way there. */
function reportOf(frontend: number, second: number): UsageReport {
  const model = frontend % MODELS;
  const pool = id64(`m${model}`);
  const engines = numbers(ENGINES / MODELS).map((at) => at * MODELS + model);
  const answered = { ended: second, status2xx: second, firstTokenCount: second, paceTokens: 10 * second };
  const vms = [1n, 2n].map((vm) => ({
    ...noVmUsage(BigInt(frontend) * 2n + vm, second),
    pools: [{ ...noPoolUsage(pool), offered: second * engines.length }],
    engines: engines.map((at) => ({
      ...{ ...noEngineUsage(pool, id64(`e${at}`)), ...answered, planned: second },
      ...{ firstTokenSecondsSum: second * (0.07 + at * 1e-6), paceSecondsSum: second * 0.1 },
    })),
    replicas: engines.map((at) => ({
      ...{ engine: id64(`e${at}`), replica: id64(addressOf(at)), sent: second + 1, ended: second },
    })),
    networks: engines.map((at) => ({
      ...{ engine: id64(`e${at}`), roundTripCount: second, roundTripSecondsSum: second * 0.012 },
    })),
  }));
  return { vms };
}

function addressOf(engine: number): string {
  return `10.0.${engine >> 8}.${engine & 255}:80`;
}

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, at) => at);
}
