import type { Fault, Scenario } from '../scenario.js';

/** What there is no way between at the moment, and what is wrong with what the control server hears. */
export class Outages {
  isControlDown = false;
  extraDelaySeconds = 0;
  areSignalsFrozen = false;
  /** Whether the control server hears of a frontend. */
  readonly controlReaches: boolean[];
  readonly #scenario: Scenario;
  /** Regions that are cut off. */
  #cut: ReadonlySet<string> = new Set();

  constructor(scenario: Scenario) {
    this.#scenario = scenario;
    this.controlReaches = scenario.frontends.map(() => true);
  }

  /** These faults go on now, and no others. */
  set(acting: readonly Fault[]): void {
    this.#cut = new Set(acting.flatMap((fault) => (fault.kind === 'region-cut' ? [fault.region] : [])));
    const silent = acting.flatMap((fault) => (fault.kind === 'frontend-silent' ? [fault.frontend] : []));
    this.isControlDown = acting.some(({ kind }) => kind === 'control-down');
    this.areSignalsFrozen = acting.some(({ kind }) => kind === 'frozen-signals');
    this.extraDelaySeconds = Math.max(
      0,
      ...acting.map((fault) => (fault.kind === 'stale-signals' ? fault.extraDelaySeconds : 0)),
    );
    this.#scenario.frontends.forEach(({ id, region }, index) => {
      this.controlReaches[index] = !this.isCut(region) && !silent.includes(id);
    });
  }

  /** Whether a frontend gets through to an engine. */
  connects(frontend: number, engine: number): boolean {
    const { frontends, engines, rttMs } = this.#scenario;
    if (rttMs[frontend]![engine]! === Number.POSITIVE_INFINITY) return false;
    const from = frontends[frontend]!.region;
    const to = engines[engine]!.region;
    return from === to || !(this.isCut(from) || this.isCut(to));
  }

  isCut(region: string | undefined): boolean {
    return region !== undefined && this.#cut.has(region);
  }
}
