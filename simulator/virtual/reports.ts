import type { EngineTelemetry, Policy, Telemetry } from '../policies/policy.js';
import type { Scenario, ScenarioRow } from '../scenario.js';
import type { EventQueue } from './event-queue.js';
import type { Outages } from './outages.js';

export interface ReportsOptions {
  readonly scenario: Scenario;
  readonly queue: EventQueue;
  readonly engines: readonly { telemetry(ready: boolean, periodSeconds: number): EngineTelemetry }[];
  /** Which engines the control server holds for ready. */
  readonly ready: readonly boolean[];
  readonly outages: Outages;
}

/** What a policy is told of each period: the same for every policy, late, and as outages let it through. */
export class Reports {
  readonly #options: ReportsOptions;
  /** Requests of the period, `[frontend][pool]`, and seconds to their answers, `[frontend][pool][engine]`. */
  readonly #offered: number[][];
  readonly #e2e: { sum: number; count: number }[][][];
  /** What the last period showed. */
  #shown: { readonly telemetry: Telemetry; readonly observed: unknown } | undefined;

  constructor(options: ReportsOptions) {
    const { frontends, pools, engines } = options.scenario;
    this.#options = options;
    this.#offered = frontends.map(() => pools.map(() => 0));
    this.#e2e = frontends.map(() => pools.map(() => engines.map(() => ({ sum: 0, count: 0 }))));
  }

  /** A try of a client has come. */
  offered({ frontend, pool }: ScenarioRow): void {
    this.#offered[frontend]![pool]!++;
  }

  answered({ frontend, pool }: ScenarioRow, engine: number, seconds: number): void {
    const e2e = this.#e2e[frontend]![pool]![engine]!;
    e2e.sum += seconds;
    e2e.count++;
  }

  /** Ends the period and has the policy hear of it. */
  tell(policy: Policy, now: number): void {
    const { scenario, queue, outages } = this.#options;
    const telemetry = this.#take(now);
    if (outages.isControlDown) return;
    const shown =
      outages.areSignalsFrozen && this.#shown ? this.#shown : { telemetry, observed: policy.observe?.(now) };
    this.#shown = shown;
    if (!policy.update) return;
    const at = now + scenario.signals.delaySeconds + outages.extraDelaySeconds;
    queue.add(at, () => {
      if (!outages.isControlDown) return policy.update!(shown.telemetry, at, shown.observed);
    });
  }

  /** What the period showed; begins the next one. */
  #take(now: number): Telemetry {
    const { scenario, engines, ready } = this.#options;
    const { periodSeconds } = scenario.signals;
    const telemetry = {
      atSeconds: now,
      engines: engines.map((engine, index) => engine.telemetry(ready[index]!, periodSeconds)),
      demandRps: this.#offered.map((counts) => counts.map((count) => count / periodSeconds)),
      e2eSeconds: this.#e2e.map((rows) => rows.map((row) => row.map(({ sum, count }) => sum / count))),
    };
    for (const counts of this.#offered) counts.fill(0);
    for (const cell of this.#e2e.flat(2)) cell.sum = cell.count = 0;
    return telemetry;
  }
}
