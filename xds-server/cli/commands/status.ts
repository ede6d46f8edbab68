import type { Command } from 'commander';
import { ageText } from '../../admin/age.js';
import { shownAlarms } from '../../admin/views/shown-alarms.js';
import { isRemarkable, type Status } from '../../admin/views/status.js';
import { steeringText } from '../../admin/views/steering.js';
import { engineCells, frontendCells } from '../../admin/views/traffic-text.js';
import { percent } from '../../percent.js';
import { ExitStatus } from '../exit-status.js';
import { ask, type SourceOptions, withSource } from '../source.js';
import { formatTable, shortTable } from '../table.js';

interface StatusOptions extends SourceOptions {
  readonly json?: boolean;
}

const STATUS_WITH_ALARMS = 3;
/** A control server that needs longer for it is not well. */
const MOST_SECONDS = 10;
const OF_THE_REST = 'of which there is nothing to say';

export function registerStatus(program: Command): void {
  withSource(
    program
      .command('status')
      .summary('show how control server, engines and Envoys are')
      .description(
        'Show on one screen since when the control server is up, its plan, alarms, the demand of frontends, engines ' +
          'with utilisation, traffic and readiness, and what Envoys have accepted. Traffic is of the last minute, in requests ' +
          'per second; latencies are means. Ends with status 3 while there are alarms.',
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

/** A control server of before an upgrade does not tell what is steered. */
function serverLines({ atMs, startedAtMs, plan, plannedBy, steered = 1 }: Status): string {
  const up = `up for ${ageText(startedAtMs, atMs)}, since ${new Date(startedAtMs).toISOString()}`;
  const by = plannedBy === null ? '' : `, made by the control server at ${plannedBy}`;
  if (plan === null) return `${up}\nno plan is published yet`;
  const inForce = `plan ${plan.sequence} (${plan.id}) for ${ageText(plan.createdAtMs, atMs)}${by}`;
  return [up, inForce, plan.plain ?? '', steeringText(steered)].filter((line) => line !== '').join('\n');
}

function alarmLines({ alarms, atMs }: Status): string {
  if (alarms.length === 0) return 'no alarms';
  const { shown, more } = shownAlarms(alarms);
  const lines = [
    ...shown.map(
      ({ id, sinceMs, message }) => `  ${id}, for ${ageText(sinceMs, atMs)}: ${indented(message)}`,
    ),
    ...more.map(({ kind, count }) => `  … and ${count} more of ${kind}; --json lists all`),
  ];
  return [alarms.length === 1 ? '1 alarm:' : `${alarms.length} alarms:`, ...lines].join('\n');
}

/** Messages may have several lines, such as a problem of the configuration each. */
function indented(message: string): string {
  return message.replaceAll('\n', '\n    ');
}

function frontendTable({ frontends }: Status): string {
  return formatTable([
    [
      'frontend',
      'planned for',
      'by',
      'offered',
      'refused',
      'failed',
      'first token',
      'whole answer',
      'Envoys',
    ],
    ...frontends.map(({ frontendId, requestsPerSecond, sources, traffic, envoys }) => [
      frontendId,
      requestsPerSecond.toFixed(1),
      sources.join(', '),
      ...frontendCells(traffic),
      String(envoys),
    ]),
  ]);
}

function engineTable({ engines }: Status): string {
  return shortTable(
    [
      ...['engine', 'utilisation', 'requests', 'failures', '4xx', 'first token', 'whole answer'],
      ...['capacity', 'ready', 'in flight', 'remarks'],
    ],
    engines,
    isRemarkable,
    (engine) => [
      engine.engineId,
      engine.utilization === null ? '' : percent(engine.utilization),
      ...engineCells(engine.traffic),
      engine.effectiveCapacity.toFixed(2),
      `${engine.readyReplicas} of ${engine.replicas}`,
      engine.inFlight === null ? '' : String(engine.inFlight),
      engine.remarks.join(', '),
    ],
    OF_THE_REST,
  );
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
    OF_THE_REST,
  );
}
