import type { EngineUsage, PoolUsage } from '../../wire/usage-report.js';

/** Counts of one (frontend, pool). */
export type PoolTotals = Omit<PoolUsage, 'pool'> & {
  readonly frontendId: string;
  readonly poolId: string;
};

/** Counts of one (frontend, pool, engine). */
export type EngineTotals = Omit<EngineUsage, 'pool' | 'engine'> & {
  readonly frontendId: string;
  readonly poolId: string;
  readonly engineId: string;
};

/** Usage since the control server started, over all Envoys of a frontend. */
export class UsageTotals {
  readonly #pools = new Map<string, PoolTotals>();
  readonly #engines = new Map<string, EngineTotals>();

  get pools(): readonly PoolTotals[] {
    return [...this.#pools.values()];
  }

  get engines(): readonly EngineTotals[] {
    return [...this.#engines.values()];
  }

  addPool(frontendId: string, poolId: string, { pool: _pool, ...usage }: PoolUsage): void {
    const key = `${frontendId} ${poolId}`;
    this.#pools.set(key, { frontendId, poolId, ...add(usage, this.#pools.get(key)) });
  }

  addEngine(
    frontendId: string,
    poolId: string,
    engineId: string,
    { pool: _pool, engine: _engine, ...usage }: EngineUsage,
  ): void {
    const key = `${frontendId} ${poolId} ${engineId}`;
    this.#engines.set(key, { frontendId, poolId, engineId, ...add(usage, this.#engines.get(key)) });
  }
}

function add<T extends Readonly<Record<keyof T, number>>>(usage: T, total: T | undefined): T {
  if (total === undefined) return usage;
  const sum = Object.keys(usage).map((name) => [name, usage[name as keyof T] + total[name as keyof T]]);
  return Object.fromEntries(sum) as T;
}
