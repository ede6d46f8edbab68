import type { Path } from '../problem.js';
import type { Draft, Findings } from './findings.js';

export function checkPolicy(config: Draft, found: Findings): void {
  const { policy } = config;
  const { targetUtilization, maxUtilization, retries } = policy ?? {};
  if (targetUtilization !== undefined && maxUtilization !== undefined && targetUtilization > maxUtilization) {
    found.problem(['policy', 'targetUtilization'], `must be at most maxUtilization, ${maxUtilization}`);
  }
  if (retries?.min !== undefined && retries.max !== undefined && retries.min > retries.max) {
    found.problem(['policy', 'retries', 'min'], `must be at most max, ${retries.max}`);
  }
  checkBounds(found, policy?.bounds ?? []);
  const classes = new Map<string, Path>();
  const priorities = new Set([0, ...Object.values(config.classes ?? {}).map((each) => each?.priority)]);
  for (const [index, entry] of (policy?.minShares ?? []).entries()) {
    const path = ['policy', 'minShares', index];
    if (entry?.pool === undefined) continue;
    found.knownPool([...path, 'pool'], entry.pool);
    const name = `the class of pool ${entry.pool} with priority ${entry.priority}`;
    found.once(classes, name, path, name);
    if (entry.priority !== undefined && !priorities.has(entry.priority)) {
      const known = [...priorities].filter((priority) => priority !== undefined);
      found.warn(
        [...path, 'priority'],
        `no class has priority ${entry.priority}, so nothing is kept`,
        `known: ${known.join(', ')}`,
      );
    }
  }
}

function checkBounds(found: Findings, bounds: NonNullable<NonNullable<Draft['policy']>['bounds']>): void {
  const seen = new Map<string, Path>();
  const least = new Map<string, number>();
  const largest = new Map<string, number>();
  for (const [index, bound] of bounds.entries()) {
    const path = ['policy', 'bounds', index];
    const { frontend, pool, engine, pin } = bound ?? {};
    const min = pin ?? bound?.min ?? 0;
    const max = pin ?? bound?.max ?? 1;
    if (frontend === undefined || pool === undefined || engine === undefined) continue;
    const known =
      found.known([...path, 'frontend'], 'frontend', frontend, found.frontendIds) &&
      found.knownPool([...path, 'pool'], pool) &&
      found.known([...path, 'engine'], 'engine', engine, found.engineIds);
    if (!known) continue;
    found.once(
      seen,
      `${frontend} ${pool} ${engine}`,
      path,
      `the weight of ${engine} in ${pool} for ${frontend}`,
    );
    const serving = found.pools?.find(({ id }) => id === pool)?.engineIds;
    if (serving === undefined) continue;
    if (!serving.includes(engine)) {
      found.problem([...path, 'engine'], `engine ${engine} does not serve ${pool}`);
      continue;
    }
    if (pin !== undefined && ['min', 'max'].some((key) => found.isWritten([...path, key]))) {
      found.problem([...path, 'pin'], 'give either pin or min and max', { at: 'key' });
    }
    if (min > max) found.problem([...path, 'min'], `must be at most max, ${max}`);
    const row = `${frontend} ${pool}`;
    const total = (least.get(row) ?? 0) + min;
    least.set(row, total);
    if (total > 1 + 1e-9 && total - min <= 1 + 1e-9) {
      found.problem(
        [...path, pin === undefined ? 'min' : 'pin'],
        `the least weights of ${pool} for ${frontend} add up to more than 1`,
      );
    }
    // Each bound lowers what the engines may get together: all of them 1 to begin with.
    const room = (largest.get(row) ?? serving.length) - (1 - max);
    largest.set(row, room);
    if (room < 1 - 1e-9 && room + (1 - max) >= 1 - 1e-9) {
      found.problem(
        [...path, pin === undefined ? 'max' : 'pin'],
        `the largest weights of ${pool} for ${frontend} add up to less than 1`,
      );
    }
  }
}
