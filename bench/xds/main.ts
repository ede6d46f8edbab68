import { writeFileSync } from 'node:fs';
import { readArguments } from '../arguments.js';
import { loadAverage } from '../filter/cpu.js';
import { type DisturbanceResult, measureDisturbance, measureFrozen } from './disturbance.js';
import { type EnvoyPushResult, measureEnvoyPush } from './envoy-push.js';
import { type LongRunResult, measureLongRun, pushesPerDay } from './long-run.js';
import { measurePublishing, type PublishingResult } from './publishing.js';
import { measurePush, type PushResult } from './push.js';
import { measureWriter } from './writer.js';

/** What `--json FILE` writes. */
interface Figures {
  readonly push1000: PushResult;
  /** With fewer streams, to see that cost grows with them and not faster. */
  readonly growth: readonly PushResult[];
  readonly disturbance: DisturbanceResult;
  readonly edsWriterSpeedup: number;
  readonly publishing: PublishingResult;
  readonly envoyPush: readonly EnvoyPushResult[];
  readonly longRun: LongRunResult;
  /** Seconds until frozen clients are forgotten; only in a full run. */
  readonly frozenSeconds?: number;
}

/** 1000 engines of 4 replicas. */
const LARGE = { frontends: 64, clusters: 8, endpoints: 500, replicas: 4 };
const SIZE = { frontends: 10, clusters: 20, endpoints: 250 };
/** The default of `server.edsIntervalSeconds`. */
const EDS_INTERVAL_SECONDS = 5;

const full = {
  pushes: 15,
  growth: [250, 500],
  envoyPushes: 150,
  longRunPushes: pushesPerDay(EDS_INTERVAL_SECONDS),
};
const quick = { pushes: 4, growth: [250], envoyPushes: 10, longRunPushes: 300 };

async function main(): Promise<void> {
  const options = readArguments('xds');
  const effort = options.quick ? quick : full;
  report(`load average ${loadAverage()}`);
  const writer = measureWriter(options.quick ? 50 : 300);
  report(
    `EDS writer: ${writer.writerMs.toFixed(3)} ms of CPU for 1000 endpoints, protobuf-es ${writer.protobufMs.toFixed(3)} ms: ` +
      `${writer.speedup.toFixed(1)} times faster`,
  );
  const publishing = await measurePublishing(LARGE, options.quick ? 5 : 20);
  report(
    `a plan for ${publishing.frontends} frontends of ${publishing.engines} engines: ${ms(publishing.cpuMs)} of CPU, ` +
      `the event loop stood still for at most ${ms(publishing.longestStallMs)}`,
  );
  const growth: PushResult[] = [];
  for (const streams of [...effort.growth, 1000]) {
    const result = await measurePush({ size: SIZE, streams, pushes: effort.pushes });
    growth.push(result);
    report(pushLine(result));
  }
  const disturbance = await measureDisturbance(
    { size: SIZE, streams: 500, pushes: effort.pushes },
    { churning: 100, stuck: 10 },
  );
  report(
    `500 streams: p99 ${ms(disturbance.quietP99Ms)}; with ${disturbance.churning} churning and ${disturbance.stuck} stuck ones ` +
      `${ms(disturbance.disturbedP99Ms)}, server memory +${disturbance.rssGrowthMiB.toFixed(0)} MiB meanwhile`,
  );
  const envoyPush: EnvoyPushResult[] = [];
  for (const endpoints of [100, 1000]) {
    for (const steering of ['maglev', 'ring-hash', 'override-host'] as const) {
      const result = await measureEnvoyPush({ endpoints, steering, pushes: effort.envoyPushes });
      envoyPush.push(result);
      report(envoyLine(result));
    }
  }
  const longRun = await measureLongRun(effort.longRunPushes);
  report(
    `${longRun.pushes} pushes to ${longRun.streams} streams: heap ${longRun.earlyHeapMiB.toFixed(1)} MiB after a tenth, ` +
      `${longRun.lateHeapMiB.toFixed(1)} MiB at the end; resident ${longRun.earlyRssMiB.toFixed(0)} and ${longRun.lateRssMiB.toFixed(0)} MiB`,
  );
  const frozen = options.quick ? {} : { frozenSeconds: await measureFrozen(200) };
  if (frozen.frozenSeconds !== undefined) {
    report(`200 clients that froze were forgotten after ${frozen.frozenSeconds.toFixed(0)} s`);
  }
  const figures: Figures = {
    push1000: growth.at(-1)!,
    growth: growth.slice(0, -1),
    disturbance,
    edsWriterSpeedup: writer.speedup,
    publishing,
    envoyPush,
    longRun,
    ...frozen,
  };
  if (options.json) writeFileSync(options.json, `${JSON.stringify(figures, null, 2)}\n`);
}

function pushLine(result: PushResult): string {
  const {
    streams,
    bytesPerStream,
    p50Ms,
    p99Ms,
    lastMs,
    rawP99Ms,
    rawLastMs,
    serverCpuMs,
    rawCpuMs,
    rssMiB,
  } = result;
  return (
    `${streams} streams of ${(bytesPerStream / 1000).toFixed(0)} kB: p50 ${ms(p50Ms)}, p99 ${ms(p99Ms)}, last ${ms(lastMs)}; ` +
    `raw p99 ${ms(rawP99Ms)}, last ${ms(rawLastMs)} (${(lastMs / rawLastMs).toFixed(2)} times); ` +
    `server CPU ${ms(serverCpuMs)}, raw ${ms(rawCpuMs)}; ${rssMiB.toFixed(0)} MiB`
  );
}

function envoyLine({
  policy,
  endpoints,
  mainCpuMs,
  workerCpuMs,
  quietP99Ms,
  p99Ms,
  maxMs,
}: EnvoyPushResult): string {
  return (
    `push in Envoy, ${policy}, ${endpoints} endpoints: main thread ${mainCpuMs.toFixed(2)} ms, worker ${workerCpuMs.toFixed(2)} ms; ` +
    `p99 of requests ${ms(p99Ms)} (${ms(quietP99Ms)} without pushes), longest ${ms(maxMs)}`
  );
}

const ms = (value: number) => `${value.toFixed(value < 10 ? 1 : 0)} ms`;

function report(line: string): void {
  console.log(line);
}

await main();
process.exit();
