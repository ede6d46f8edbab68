import type { Process } from './process.js';

/** More explanations say less. */
const MOST_EXPLANATIONS = 24;

export const ACCOUNT_BEGINS = '/v1/alarms\n';

interface PlanJson {
  readonly rows?: readonly {
    readonly frontendId: string;
    readonly poolId: string;
    readonly weights: readonly { readonly engineId: string }[];
  }[];
}

/**
 * What a control server says of itself, for whoever waited in vain: alarms, plan, fleet, why weights are what they are, and the
 * ends of what it and its Envoys have logged. Where it does not answer, that is said instead. Never throws.
 */
export async function account(adminUrl: string, processes: readonly Process[]): Promise<string> {
  const [alarms, plan, fleet] = await Promise.all([
    answer(adminUrl, '/v1/alarms'),
    answer(adminUrl, '/v1/plan'),
    answer(adminUrl, '/v1/fleet'),
  ]);
  const why = await Promise.all(pairsOf(plan, fleet).map((pair) => answer(adminUrl, `/v1/explain?${pair}`)));
  return [
    `${ACCOUNT_BEGINS}${lines(alarms)}`,
    `/v1/plan\n${lines(plan)}`,
    `/v1/fleet\n${lines(fleet)}`,
    ...why.map((text) => `/v1/explain\n${text.trimEnd()}`),
    ...processes.map((process) => `${process.name}${process.running ? '' : ' (ended)'}\n${process.tail}`),
  ].join('\n\n');
}

async function answer(adminUrl: string, path: string): Promise<string> {
  try {
    const headers = { accept: path.startsWith('/v1/explain') ? 'text/plain' : 'application/json' };
    const response = await fetch(`${adminUrl}${path}`, { headers, signal: AbortSignal.timeout(5_000) });
    return await response.text();
  } catch (error) {
    return `no answer: ${String((error as Error).cause ?? error)}`;
  }
}

/** Queries for every engine that a row of the plan may use. */
function pairsOf(plan: string, fleet: string): readonly string[] {
  const { rows = [] } = parsed(plan) as PlanJson;
  const { pools = [] } = parsed(fleet) as { pools?: readonly { id: string; engineIds: readonly string[] }[] };
  return rows
    .flatMap(({ frontendId, poolId }) => {
      const engineIds = pools.find(({ id }) => id === poolId)?.engineIds ?? [];
      return engineIds.map(
        (engine) => `${new URLSearchParams({ frontend: frontendId, pool: poolId, engine })}`,
      );
    })
    .slice(0, MOST_EXPLANATIONS);
}

function parsed(text: string): object {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

/** Which keys lie where in a partition tells nothing, nor what was counted since the start. */
const LEFT_OUT = new Set(['segments', 'former', 'usage']);

/** One line for each member, and for each entry of those that are lists. */
function lines(text: string): string {
  const members = Object.entries(parsed(text)).filter(([name]) => !LEFT_OUT.has(name));
  if (members.length === 0) return text;
  const json = (value: unknown) =>
    JSON.stringify(value, (name, part) => (LEFT_OUT.has(name) ? undefined : part));
  return members
    .flatMap(([name, value]) =>
      Array.isArray(value) && value.length > 0
        ? value.map((entry, at) => `${name}[${at}] ${json(entry)}`)
        : [`${name} ${json(value)}`],
    )
    .join('\n');
}
