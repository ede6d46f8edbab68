import { rowsOf, type Scenario, type ScenarioRow, type Slo, workOf } from '../scenario.js';

/** Length of the pieces that the run is cut into for plots and oscillation. */
export const SAMPLE_SECONDS = 5;

/** How a request ended for its client, after all its retries. */
export interface RequestEnd {
  readonly firstAt: number;
  readonly end: 'answered' | 'shed' | 'timeout' | 'failed';
  /** From the first try to the first token of the answer; for requests without one, the time that was lost. */
  readonly ttftSeconds: number;
  readonly e2eSeconds: number;
  readonly requestClass: number;
  readonly streamed: boolean;
}

/** One piece of the run. */
export interface Sample {
  readonly atSeconds: number;
  /** By row; undefined for policies without weights. */
  readonly weights: readonly (readonly number[] | undefined)[];
  /** Requests sent within the piece, `[row][engine]`. */
  readonly sent: readonly (readonly number[])[];
  /** Requests at each engine at its end. */
  readonly inFlight: readonly number[];
}

/** What became of the requests of a class. */
export interface ClassRecord {
  readonly ends: Record<RequestEnd['end'], number>;
  readonly e2eSeconds: number[];
  good: number;
}

/** Everything that is counted in a run; requests count when they were first sent in the measured time. */
export class Recorder {
  readonly e2eSeconds: number[] = [];
  readonly ttftSeconds: number[] = [];
  /** Of requests whose answers are streamed. */
  readonly streamedTtftSeconds: number[] = [];
  /** Mean time between the tokens of each answer with more than one. */
  readonly tbotSeconds: number[] = [];
  readonly ends = { answered: 0, shed: 0, timeout: 0, failed: 0 };
  readonly samples: Sample[] = [];
  readonly frontendE2eSeconds: number[][];
  readonly byClass: ClassRecord[];
  good = 0;
  /** Whether the policy ever took a profile for wrong in the measured time; undefined for one that would not know. */
  driftDetected: boolean | undefined;
  promptTokens = 0;
  cachedTokens = 0;
  /** Attempts of clients, and of frontends that tried another engine. */
  clientRetries = 0;
  failovers = 0;
  followUps = 0;
  moved = 0;
  /** Sum over follow-ups of the total variation of the weights between a turn and the one before. */
  expectedMoves = 0;
  readonly #scenario: Scenario;
  /** By class. */
  readonly #slos: readonly Slo[];
  readonly #rows: readonly ScenarioRow[];
  /** `[row][engine]`, since the last sample. */
  #sent: number[][];
  /** Requests that were sent in the measured time, `[frontend][engine]`. */
  readonly flows: number[][];
  /** Replica-seconds that these take of each engine, as its benchmark says. */
  readonly workSeconds: number[];
  /** Of one request, `[frontend][pool][engine]`. */
  readonly #work: readonly (readonly (readonly number[])[])[];

  constructor(scenario: Scenario) {
    this.#scenario = scenario;
    this.#slos = scenario.classes.map(({ pool }) => scenario.pools[pool]!.slo ?? scenario.slo);
    this.#rows = rowsOf(scenario);
    this.#sent = this.#zeros(this.#rows);
    this.flows = this.#zeros(scenario.frontends);
    this.workSeconds = scenario.engines.map(() => 0);
    this.#work = workOf(scenario);
    this.frontendE2eSeconds = scenario.frontends.map(() => []);
    this.byClass = scenario.classes.map(() => ({
      ends: { answered: 0, shed: 0, timeout: 0, failed: 0 },
      e2eSeconds: [],
      good: 0,
    }));
  }

  get requests(): number {
    const { answered, shed, timeout, failed } = this.ends;
    return answered + shed + timeout + failed;
  }

  measures(at: number): boolean {
    const { warmupSeconds, seconds } = this.#scenario;
    return at >= warmupSeconds && at < warmupSeconds + seconds;
  }

  sent({ frontend, pool }: ScenarioRow, engine: number, at: number): void {
    this.#sent[frontend * this.#scenario.pools.length + pool]![engine]!++;
    if (!this.measures(at)) return;
    this.flows[frontend]![engine]!++;
    this.workSeconds[engine]! += this.#work[frontend]![pool]![engine]!;
  }

  ended(
    frontend: number,
    { firstAt, end, ttftSeconds, e2eSeconds, requestClass, streamed }: RequestEnd,
  ): void {
    if (!this.measures(firstAt)) return;
    this.ends[end]++;
    const ofClass = this.byClass[requestClass]!;
    ofClass.ends[end]++;
    ofClass.e2eSeconds.push(e2eSeconds);
    this.e2eSeconds.push(e2eSeconds);
    this.ttftSeconds.push(ttftSeconds);
    if (streamed) this.streamedTtftSeconds.push(ttftSeconds);
    this.frontendE2eSeconds[frontend]!.push(e2eSeconds);
    const slo = this.#slos[requestClass]!;
    if (end === 'answered' && ttftSeconds <= slo.ttftSeconds && e2eSeconds <= slo.e2eSeconds) {
      this.good++;
      ofClass.good++;
    }
  }

  sample(
    atSeconds: number,
    weights: readonly (readonly number[] | undefined)[],
    inFlight: readonly number[],
  ): void {
    this.samples.push({ atSeconds, weights, sent: this.#sent, inFlight });
    this.#sent = this.#zeros(this.#rows);
  }

  #zeros(of: readonly unknown[]): number[][] {
    return of.map(() => this.#scenario.engines.map(() => 0));
  }
}
