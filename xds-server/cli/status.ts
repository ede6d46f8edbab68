import type { Command } from 'commander';
import { ageText } from '../admin/age.js';
import type { EngineStatus, Status } from '../admin/status.js';
import { percent } from '../percent.js';
import { ExitStatus } from './exit-status.js';
import { ask, type SourceOptions, withSource } from './source.js';
import { formatTable } from './table.js';

interface StatusOptions extends SourceOptions {
  readonly json?: boolean;
}

const STATUS_WITH_ALARMS = 3;
/** A control server that needs longer for it is not well. */
const MOST_SECONDS = 10;
/** Of more engines or Envoys, those are shown of which there is something to say. */
const MOST_ROWS = 20;

export function registerStatus(program: Command): void {
  withSource(
    program
      .command('status')
      .summary('show how control server, engines and Envoys are')
      .description(
        'Show on one screen since when the control server is up, its plan, alarms, the demand of frontends, engines ' +
          'with utilisation and readiness, and what Envoys have accepted. Ends with status 3 while there are alarms.',
      )
      .option('--json', 'print JSON'),
  ).action(async (options: StatusOptions) => {
    const status = JSON.parse(await ask(options, '/v1/status', { mostSeconds: MOST_SECONDS })) as Status;
    console.log(options.json === true ? JSON.stringify(status, null, 2) : statusText(status));
    if (status.alarms.length > 0) throw new ExitStatus(STATUS_WITH_ALARMS);
  });
}

export function statusText(status: Status): string {
  return [
    serverLines(status),
    alarmLines(status),
    frontendTable(status),
    engineTable(status),
    envoyTable(status),
  ].join('\n\n');
}

function serverLines({ atMs, startedAtMs, plan, plannedBy }: Status): string {
  const up = `up for ${ageText(startedAtMs, atMs)}, since ${new Date(startedAtMs).toISOString()}`;
  const by = plannedBy === null ? '' : `, made by the control server at ${plannedBy}`;
  if (plan === null) return `${up}\nno plan is published yet`;
  return `${up}\nplan ${plan.sequence} (${plan.id}) for ${ageText(plan.createdAtMs, atMs)}${by}`;
}

function alarmLines({ alarms, atMs }: Status): string {
  if (alarms.length === 0) return 'no alarms';
  const lines = alarms.map(
    ({ id, sinceMs, message }) => `  ${id}, for ${ageText(sinceMs, atMs)}: ${message}`,
  );
  return [alarms.length === 1 ? '1 alarm:' : `${alarms.length} alarms:`, ...lines].join('\n');
}

function frontendTable({ frontends }: Status): string {
  return formatTable([
    ['frontend', 'requests/s', 'by', 'Envoys'],
    ...frontends.map(({ frontendId, requestsPerSecond, sources, envoys }) => [
      frontendId,
      requestsPerSecond.toFixed(1),
      sources.join(', '),
      String(envoys),
    ]),
  ]);
}

function engineTable({ engines }: Status): string {
  return shortTable(
    ['engine', 'utilisation', 'capacity', 'ready', 'in flight', 'remarks'],
    engines,
    isRemarkable,
    (engine) => [
      engine.engineId,
      engine.utilization === null ? '' : percent(engine.utilization),
      engine.effectiveCapacity.toFixed(2),
      `${engine.readyReplicas} of ${engine.replicas}`,
      engine.inFlight === null ? '' : String(engine.inFlight),
      engine.remarks.join(', '),
    ],
  );
}

function isRemarkable({ remarks, readyReplicas, replicas, utilization }: EngineStatus): boolean {
  return remarks.length > 0 || readyReplicas < replicas || (utilization ?? 0) >= 1;
}

function envoyTable({ envoys, atMs }: Status): string {
  if (envoys.length === 0) return 'no Envoy is connected';
  return shortTable(
    ['Envoy', 'frontend', 'version', 'xDS', 'snapshot', 'heard of'],
    envoys,
    ({ xds, snapshot }) => xds !== 'all accepted' || snapshot?.isNewest !== true,
    ({ nodeId, frontendId, version, xds, snapshot }) => [
      nodeId,
      frontendId,
      version,
      xds,
      snapshot === null ? 'fetches none' : snapshot.isNewest ? 'newest' : 'not the newest',
      snapshot === null ? '' : `${ageText(snapshot.lastCallAtMs, atMs)} ago`,
    ],
  );
}

/** All of few; of many those that are worth it. */
function shortTable<T>(
  heading: readonly string[],
  items: readonly T[],
  isWorthIt: (item: T) => boolean,
  row: (item: T) => readonly string[],
): string {
  const shown = items.length <= MOST_ROWS ? items : items.filter(isWorthIt);
  const table = formatTable([heading, ...shown.map(row)]);
  const left = items.length - shown.length;
  return left === 0 ? table : `${table}\n… and ${left} more, of which there is nothing to say`;
}
