import { indent, table } from '../text-table.js';
import { type Flow, maxUtilization, type PolicyResult, unexplainedFlows } from './measurement.js';
import type { PhaseResult } from './phase.js';
import {
  CLIENT_TIMEOUT_MS,
  conversations,
  engines,
  frontends,
  MAX_LAG_MS,
  rttMs,
  SCALE,
  SLO,
  type Span,
} from './scenario.js';

export interface Results {
  readonly nearest: PhaseResult;
  readonly wardrop: PhaseResult;
}

/** Whether the harness was fast enough for its times to be believed. */
export function isValid(results: Partial<Results>): boolean {
  return Object.values(results).every(({ lagMs }) => [...lagMs.values()].every((lag) => lag <= MAX_LAG_MS));
}

/** What is about to happen, in numbers. */
export function introduction({ warmupSeconds, seconds }: Span): string {
  const { turns, outputTokens } = conversations;
  const demand = frontends.map(({ id, requestsPerSecond }) => `${id} ${requestsPerSecond}`).join(', ');
  const supply = engines.map(({ id, requestsPerSecond }) => `${id} ${requestsPerSecond}`).join(', ');
  const lines = [
    `Clients send, in requests/s:    ${demand}`,
    `Engines can answer:             ${supply}`,
    'Round trips in ms:',
    indent(
      table([
        ['', ...engines.map(({ id }) => id)],
        ...frontends.map(({ id }) => [id, ...engines.map((engine) => String(rttMs[id]![engine.id]))]),
      ]),
    ),
    `Conversations of ${turns.min} to ${turns.max} turns, ${outputTokens.min} to ${outputTokens.max} tokens an answer, ` +
      `half of them streamed. Clients leave after ${CLIENT_TIMEOUT_MS / 1000} s.`,
    `Each policy meets fresh engines and the same requests: ${warmupSeconds} s to warm up, ${seconds} s measured.`,
  ];
  if (SCALE !== 1)
    lines.push(
      `All rates and speeds are scaled by ${SCALE}, and the times of clients to match, for the sake of the machine.`,
    );
  return lines.join('\n');
}

/** Flows and loads of one policy. */
export function policyReport(name: string, { policy }: PhaseResult): string {
  const { flows, loads } = policy;
  const header = ['', ...engines.map(({ id }) => id)];
  const rows = frontends.map(({ id }) => [
    id,
    ...flows.filter(({ frontend }) => frontend === id).map(flowCell),
  ]);
  const load = loads.map(
    ({ rps, capacityRps }) => `${rps.toFixed(1)} of ${capacityRps}, ${percent(rps / capacityRps, 0)}`,
  );
  return `${name}: requests/s planned → measured\n${indent(table([header, ...rows, ['load', ...load]]))}`;
}

/** What clients felt under both policies. */
export function comparison({ nearest, wardrop }: Results): string {
  const line = (label: string, value: (result: PolicyResult) => string) => [
    label,
    value(nearest.policy),
    value(wardrop.policy),
  ];
  return table([
    ['', 'nearest only', 'Wardrop'],
    line('requests', ({ requests }) => String(requests)),
    line('within the SLO', ({ sloShare }) => percent(sloShare, 1)),
    line('first token p50 / p90', ({ p50TtftMs, p90TtftMs }) => `${ms(p50TtftMs)} / ${ms(p90TtftMs)}`),
    line('complete answer mean', ({ meanE2eMs }) => ms(meanE2eMs)),
    line('complete answer p50 / p90', ({ p50E2eMs, p90E2eMs }) => `${ms(p50E2eMs)} / ${ms(p90E2eMs)}`),
    line('prompt tokens from cache', ({ cacheHitShare }) => percent(cacheHitShare, 1)),
    line('clients that left (time-out)', ({ timeouts }) => String(timeouts)),
    line('errors', ({ errors }) => String(errors)),
    line('refused (429)', ({ shed }) => String(shed)),
    line('highest load of an engine', (result) => percent(maxUtilization(result), 0)),
  ]);
}

export function notes({ nearest, wardrop }: Results): string {
  const lines = [
    `SLO: complete within ${SLO.completeMs / 1000} s and, if streamed, the first token within ${SLO.firstTokenMs} ms; ` +
      'what fails, is refused or times out misses it.',
    `Latencies are of answered requests, and of clients that left with the ${CLIENT_TIMEOUT_MS / 1000} s they waited.`,
    `${samplingNote(unexplainedFlows(wardrop.policy))}${overflowNote(wardrop.policy)}`,
    lagNote([...nearest.lagMs, ...wardrop.lagMs]),
  ];
  for (const [name, { policy }] of [['nearest only', nearest] as const, ['Wardrop', wardrop] as const]) {
    for (const [detail, count] of policy.errorDetails)
      lines.push(`Error under ${name}, ${count} times: ${detail}`);
  }
  return lines.join('\n');
}

/** The content of `--json FILE`. */
export function jsonReport(results: Results): object {
  const { flows } = results.wardrop.policy;
  return {
    valid: isValid(results),
    policies: {
      nearest: figures(results.nearest.policy),
      wardrop: {
        ...figures(results.wardrop.policy),
        flows: flows.map(({ frontend, engine, plannedRps, measuredRps }) => ({
          frontend,
          engine,
          plannedRps: round(plannedRps, 3),
          measuredRps: round(measuredRps, 3),
        })),
      },
    },
  };
}

function figures(policy: PolicyResult): object {
  const { sloShare, cacheHitShare, errors, timeouts, shed, requests } = policy;
  return {
    meanE2eMs: round(policy.meanE2eMs, 1),
    p50TtftMs: round(policy.p50TtftMs, 1),
    p90TtftMs: round(policy.p90TtftMs, 1),
    sloShare: round(sloShare, 4),
    cacheHitShare: round(cacheHitShare, 4),
    errors,
    timeouts,
    shed,
    requests,
    maxUtilization: round(maxUtilization(policy), 4),
  };
}

function flowCell({ plannedRps, measuredRps }: Flow): string {
  if (plannedRps === 0 && measuredRps === 0) return '–';
  return `${plannedRps.toFixed(1)} → ${measuredRps.toFixed(1)}`;
}

function samplingNote(unexplained: readonly Flow[]): string {
  if (unexplained.length === 0) {
    return 'Measured flows are those of the plan within sampling error (three standard errors, by conversation).';
  }
  const flows = unexplained.map(
    ({ frontend, engine, differenceRps, standardErrorRps }) =>
      `${frontend}→${engine} ${differenceRps.toFixed(2)} requests/s, standard error ${standardErrorRps.toFixed(2)}`,
  );
  return `Measured flows differ from the plan by more than chance explains: ${flows.join('; ')}.`;
}

function overflowNote({ overflowed, requests }: PolicyResult): string {
  if (overflowed === 0) return '';
  return ` Left out of this: ${percent(overflowed / requests, 1)} of the requests, whose engine was busy for a moment (reason overflow).`;
}

function lagNote(lags: readonly (readonly [string, number])[]): string {
  const [name, worst] = lags.reduce((a, b) => (b[1] > a[1] ? b : a));
  const verdict =
    worst <= MAX_LAG_MS
      ? 'The times can be trusted'
      : 'THIS RUN IS INVALID, the machine was too busy for its times to be trusted';
  return `${verdict}: event loops lagged by at most ${worst.toFixed(1)} ms at p99 (${name}; limit ${MAX_LAG_MS} ms).`;
}

function ms(value: number): string {
  return Number.isNaN(value) ? '–' : `${Math.round(value)} ms`;
}

function percent(share: number, digits: number): string {
  return Number.isNaN(share) ? '–' : `${(100 * share).toFixed(digits)} %`;
}

function round(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
