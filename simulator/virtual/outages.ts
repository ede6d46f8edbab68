import type { Fault, Scenario } from '../scenario.js';

/** A fault between engines, frontends and the control server, and not of an engine itself. */
type Outage = Exclude<Fault, { readonly kind: 'engine-down' | 'slow-engine' }>;

/** What there is no way between at the moment, and what is wrong with what the control server hears. */
export class Outages {
  isControlDown = false;
  extraDelaySeconds = 0;
  areSignalsFrozen = false;
  /** Whether the control server hears of a frontend. */
  readonly controlReaches: boolean[];
  readonly #scenario: Scenario;
  /** Regions that are cut off. */
  readonly #cut = new Set<string>();
  /** Frontends that the control server has no way to. */
  readonly #silent = new Set<string>();

  constructor(scenario: Scenario) {
    this.#scenario = scenario;
    this.controlReaches = scenario.frontends.map(() => true);
  }

  /** Begins an outage, or ends it. */
  set(outage: Outage, isOn: boolean): void {
    switch (outage.kind) {
      case 'region-cut':
        include(this.#cut, outage.region, isOn);
        this.#lookWhomControlReaches();
        break;
      case 'frontend-silent':
        include(this.#silent, outage.frontend, isOn);
        this.#lookWhomControlReaches();
        break;
      case 'control-down':
        this.isControlDown = isOn;
        break;
      case 'stale-signals':
        this.extraDelaySeconds = isOn ? outage.extraDelaySeconds : 0;
        break;
      case 'frozen-signals':
        this.areSignalsFrozen = isOn;
        break;
    }
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

  #lookWhomControlReaches(): void {
    this.#scenario.frontends.forEach(({ id, region }, index) => {
      this.controlReaches[index] = !this.isCut(region) && !this.#silent.has(id);
    });
  }
}

function include(set: Set<string>, item: string, isIn: boolean): void {
  if (isIn) set.add(item);
  else set.delete(item);
}
