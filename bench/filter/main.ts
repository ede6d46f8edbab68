import { readFileSync, writeFileSync } from 'node:fs';
import { readArguments } from '../arguments.js';
import { loadAverage } from './cpu.js';
import { checkEnvoyMemory } from './envoy-memory.js';
import { Figures } from './figures.js';
import { measureMemory } from './memory.js';
import { countCalls, loadC, loadFilter, moduleOf, timeModules } from './modules.js';
import { buildOpponents, type CFilters, type GoPrograms, Missing } from './opponents.js';
import { callsReport, envoyReport, memoryReport, modulesReport, residentReport, total } from './report.js';
import { measureResident, type ResidentMemory } from './resident-memory.js';
import { type Effort, measureRounds } from './rounds.js';
import type { Estimate } from './statistics.js';
import { type Variant, type VariantName, variantsOf } from './variants.js';
import { inWorld } from './world.js';

interface Size extends Effort {
  /** Of either module under Node, in each order of its functions. */
  readonly batches: number;
  readonly installs: number;
  /** Requests over which memory is watched, under Node and on Envoy. */
  readonly nodeRequests: number;
  readonly envoyRequests: number;
  readonly residentRounds: number;
}

/** For each worker, when resident memory is measured. */
const RESIDENT_REQUESTS = 5_000;

const full: Size = {
  rounds: 26,
  requests: 3000,
  latencyRequests: 400,
  batches: 40,
  installs: 10_000,
  nodeRequests: 10_000_000,
  envoyRequests: 1_000_000,
  residentRounds: 5,
};

const quick: Size = {
  rounds: 5,
  requests: 1500,
  latencyRequests: 200,
  batches: 10,
  installs: 500,
  nodeRequests: 500_000,
  envoyRequests: 20_000,
  residentRounds: 1,
};

/** In the order of `--json`. */
const NAMES = [
  ...['none', 'maglev', 'filter', 'filterBody2k', 'filterBody100k', 'c', 'extProc'],
  ...['extProcBody2k', 'extProcBody100k'],
  ...['noneNoBody', 'filterNoBody', 'cNoBody', 'extProcNoBody'],
] as readonly VariantName[];
const ADDING = NAMES.filter((name) => name !== 'none' && name !== 'noneNoBody');
const CHUNKED: readonly VariantName[] = ['none', 'maglev', 'filter', 'c', 'extProc'];

async function main(): Promise<void> {
  const options = readArguments('filter');
  const size = options.quick ? quick : full;
  const { go, cFilters } = await buildOpponents();
  if (cFilters instanceof Missing)
    report(`left out: everything about filters in C, because ${cFilters.reason}`);
  const inC = cFilters instanceof Missing ? undefined : cFilters;
  report(`load average ${loadAverage()}`);

  const calls = countCalls(loadFilter(true));
  report(callsReport('filter', calls));
  if (inC) {
    report(callsReport('C filter', countCalls(loadC(moduleOf(readFileSync(inC.same)), true))));
    report(modulesReport(timeModules(inC.same, size.batches)));
  }
  const memory = measureMemory(size.installs, size.nodeRequests);
  for (const line of memoryReport(memory)) report(line);

  let measuredThere: OnEnvoy | undefined;
  if (go instanceof Missing) report(`left out: everything on Envoy, because ${go.reason}`);
  else measuredThere = await measureOnEnvoy(go, inC, size);
  const figures = measuredThere?.figures;
  report(`load average ${loadAverage()}`);

  if (!options.json) return;
  const each = (names: readonly VariantName[], figure: (name: VariantName) => Estimate | undefined) =>
    Object.fromEntries(names.map((name) => [name, rounded(figure(name))]));
  const measured = (name: VariantName) => figures?.names.includes(name);
  const json = {
    cpuMicrosPerRequest: each(NAMES, (name) => (measured(name) ? figures?.cpuMicros(name) : undefined)),
    added: each(ADDING, (name) => (measured(name) ? figures?.addedMicros(name) : undefined)),
    perChunkMicros: each(CHUNKED, (name) => (measured(name) ? figures?.chunkMicros(name) : undefined)),
    memoryMiBPerVm: memory.mibPerVm,
    residentMiBPerVm: rounded(measuredThere?.resident.loaded),
    installMs: { p50: thousandths(memory.installMs.p50), p99: thousandths(memory.installMs.p99) },
    hostCalls: total(calls),
  };
  writeFileSync(options.json, `${JSON.stringify(json, null, 2)}\n`);
}

interface OnEnvoy {
  readonly figures: Figures;
  readonly resident: ResidentMemory;
}

async function measureOnEnvoy(go: GoPrograms, inC: CFilters | undefined, size: Size): Promise<OnEnvoy> {
  return inWorld(go, inC, async (world, signal) => {
    if (!world.pinned)
      report('no two cores, or no taskset: Envoy shares its core with the load, so figures are rough');
    const variants = variantsOf(world, inC !== undefined);
    await checkSteered(variants.find(({ name }) => name === 'filterNoBody')!);
    const measured = await measureRounds(world, variants, size, { signal, progress });
    const figures = new Figures(measured, variants);
    for (const line of envoyReport(figures)) report(line);
    report(await checkEnvoyMemory(world, variants, size.envoyRequests, signal));
    const resident = await measureResident(world, size.residentRounds, RESIDENT_REQUESTS, signal);
    report(residentReport(resident));
    return { figures, resident };
  });
}

/** A request without a body might go to whoever is near; here its key has to decide, as with a body. */
async function checkSteered({ load: { port, headers } }: Variant): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, { headers });
  const decision = answer.headers.get('x-wardrop');
  if (!decision?.startsWith('planned;'))
    throw new Error(`a request without a body was answered with ${decision}`);
}

/** Null for what could not be measured. */
function rounded(figure: Estimate | undefined): number | null {
  return figure ? thousandths(figure.value) : null;
}

function thousandths(value: number): number {
  return Math.round(value * 1000) / 1000;
}

function report(line: string): void {
  console.log(line);
}

function progress(line: string): void {
  if (process.stderr.isTTY) console.error(line);
}

try {
  await main();
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
