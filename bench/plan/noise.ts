import { Random } from '../../simulator/random.js';
import type { Fleet } from '../../xds-server/fleet/fleet.js';
import type { FleetState } from '../../xds-server/fleet/fleet-state.js';
import { engineStates } from '../../xds-server/fleet/testing/engine-states.js';
import { defaultPolicy } from '../../xds-server/fleet/testing/policy.js';
import type { OptimizerInput, Solution } from '../../xds-server/optimizer/solution.js';
import { checkPlan } from '../../xds-server/plan/check-plan.js';
import { evolvePlan } from '../../xds-server/plan/evolve.js';
import type { Plan } from '../../xds-server/plan/plan.js';
import type { Profile } from '../../xds-server/profiles/profile.js';
import { DemandEstimator } from '../../xds-server/signals/demand/demand-estimator.js';
import { settledSince } from '../../xds-server/signals/demand/settled-since.js';
import { movedShare } from './moves.js';

export interface NoiseOptions {
  readonly solve: (input: OptimizerInput) => Promise<Solution>;
  /** Requests per second per frontend, in the mean. Default 5, 40 and 400. */
  readonly rates?: readonly number[];
  /** Load over capacity of the whole fleet. Default 0.6 and 1, the hard limit. */
  readonly utilizations?: readonly number[];
  /** Seconds of steady traffic that are watched after settling. Default 1800. */
  readonly seconds?: number;
  /** Default 1. */
  readonly seed?: number;
}

export interface NoiseResult {
  /** Share of keys that moved after settling, summed over all rows, runs and plans; 0 is right. */
  readonly movesUnderNoise: number;
  /** Plans published after settling, whether they moved anything or not. */
  readonly plansUnderNoise: number;
  readonly steps: readonly StepResult[];
}

/** What a lasting rise of the busiest frontend's demand by 20 % caused. */
export interface StepResult {
  readonly requestsPerSecond: number;
  readonly utilization: number;
  /** Plans that moved keys; 1 is right where the optimum changes. */
  readonly movingPlans: number;
  /** Keys moved, over the least that the change between the first and the last weights takes; above 1 is overshoot. */
  readonly movesPerLeast: number;
}

const REGIONS = ['east', 'north', 'west'];
const POOL = 'model/0';
/** Demand of the frontends over the mean. */
const SHARES = [1.4, 1, 0.6];
const BUSIEST = 0;
const STEP = 1.2;
const STEP_SECONDS = 900;
/** How often the server solves, whether anything changed or not. */
const SOLVE_SECONDS = 10;
/** Settled: no rate has moved for more than half an hour, after which the horizon of move costs grows no more. */
const SETTLED_SECONDS = 2000;
/** A run that does not settle by then is watched all the same. */
const LONGEST_SETTLING_SECONDS = 4 * 3600;

/**
 * Poisson demand from three frontends on three engines, one in each place, of equal capacity, so that the engine of the
 * busiest place overflows. Rates are estimated from the counts of every second, as a server does it.
 */
export async function measureNoise(options: NoiseOptions): Promise<NoiseResult> {
  const { rates = [5, 40, 400], utilizations = [0.6, 1], seconds = 1800, seed = 1 } = options;
  let movesUnderNoise = 0;
  let plansUnderNoise = 0;
  const steps: StepResult[] = [];
  for (const rate of rates) {
    for (const utilization of utilizations) {
      const run = new Run(options.solve, rate, utilization, new Random(seed, `${rate} at ${utilization}`));
      await run.settle();
      run.forget();
      await run.advance(seconds, 1);
      movesUnderNoise += run.moved;
      plansUnderNoise += run.plans;
      run.forget();
      await run.advance(STEP_SECONDS, STEP);
      steps.push({
        requestsPerSecond: rate,
        utilization,
        movingPlans: run.movingPlans,
        movesPerLeast: run.movesPerLeast,
      });
    }
  }
  return { movesUnderNoise, plansUnderNoise, steps };
}

/** One fleet under one load, with all that a server keeps between two seconds. */
class Run {
  moved = 0;
  plans = 0;
  movingPlans = 0;
  readonly #solve: NoiseOptions['solve'];
  readonly #rate: number;
  readonly #random: Random;
  readonly #profile: Profile;
  readonly #estimator: DemandEstimator;
  #plan: Plan | null = null;
  /** The plan when counting began. */
  #origin: Plan | null = null;
  #nowMs = 0;
  #settledSinceMs = 0;
  /** When a rate last moved. */
  #movedMs = 0;

  constructor(solve: NoiseOptions['solve'], rate: number, utilization: number, random: Random) {
    this.#solve = solve;
    this.#rate = rate;
    this.#random = random;
    this.#profile = profile(utilization / rate);
    this.#estimator = new DemandEstimator(
      REGIONS.map((frontendId) => ({
        frontendId,
        poolId: POOL,
        requestsPerSecond: rate,
        evidence: 1,
        source: 'expected',
      })),
    );
  }

  /** Keys moved over the total variation from the first to the last weights since `forget`; 1 when nothing moved. */
  get movesPerLeast(): number {
    const least = distance(this.#origin, this.#plan);
    return this.moved === 0 ? 1 : this.moved / least;
  }

  /** Starts counting anew. */
  forget(): void {
    this.moved = 0;
    this.plans = 0;
    this.movingPlans = 0;
    this.#origin = this.#plan;
  }

  /** Lets steady traffic flow until nothing has changed for long. */
  async settle(): Promise<void> {
    const isSettled = () => this.#nowMs - this.#movedMs >= SETTLED_SECONDS * 1000;
    while (!isSettled() && this.#nowMs < LONGEST_SETTLING_SECONDS * 1000)
      await this.advance(SOLVE_SECONDS, 1);
  }

  /** Lets traffic flow, from the busiest frontend at `factor` times the usual rate. */
  async advance(seconds: number, factor: number): Promise<void> {
    const end = this.#nowMs + Math.ceil(seconds) * 1000;
    while (this.#nowMs < end) {
      const from = this.#nowMs;
      this.#nowMs += 1000;
      REGIONS.forEach((frontendId, index) => {
        const count = this.#poisson(this.#rate * SHARES[index]! * (index === BUSIEST ? factor : 1));
        this.#estimator.add(frontendId, 'node', new Map([[POOL, count]]), from, this.#nowMs);
      });
      const move = this.#estimator.evaluate(this.#nowMs).get(POOL);
      if (move !== undefined) {
        this.#settledSinceMs = settledSince(this.#settledSinceMs, move, this.#nowMs);
        this.#movedMs = this.#nowMs;
      }
      if (move !== undefined || this.#nowMs % (SOLVE_SECONDS * 1000) === 0) await this.#replan();
    }
  }

  async #replan(): Promise<void> {
    const previous = this.#plan;
    const state = this.#state();
    const input = { state, profiles: new Map([[this.#profile.id, this.#profile]]), policy: defaultPolicy };
    const solution = await this.#solve({
      ...input,
      previousWeights: (previous?.rows ?? []).map(({ frontendId, poolId, weights }) => ({
        frontendId,
        poolId,
        weights: new Map(weights.map(({ engineId, weight }) => [engineId, weight])),
      })),
      referenceMix: new Map(),
    });
    const plan = evolvePlan({ ...input, previous, solution, createdAtMs: this.#nowMs });
    const violations = checkPlan({ ...input, plan });
    if (violations.length > 0) throw new Error(`a plan failed its checks: ${violations[0]!.message}`);
    this.#plan = plan;
    if (plan === previous) return;
    this.plans++;
    const moved = plan.rows.reduce(
      (sum, row, index) => sum + movedShare(previous?.rows[index]?.segments ?? [], row.segments),
      0,
    );
    this.moved += moved;
    if (moved > 0) this.movingPlans++;
  }

  #state(): FleetState {
    return {
      fleet,
      atMs: this.#nowMs,
      engines: engineStates(fleet),
      demands: this.#estimator
        .estimates(this.#nowMs)
        .map(({ frontendId, poolId, requestsPerSecond, source }) => ({
          frontendId,
          poolId,
          priority: 0,
          requestsPerSecond,
          uncachedPromptTokens: 300,
          promptTokens: 1500,
          outputTokens: 100,
          followUpShare: 0.7,
          turnGapSeconds: 60,
          source,
        })),
      settledSeconds: (this.#nowMs - this.#settledSinceMs) / 1000,
    };
  }

  /** A count of events in one second (exponential gaps; means here are at most some hundred). */
  #poisson(mean: number): number {
    let count = 0;
    for (let at = this.#random.exponential(1); at < mean; at += this.#random.exponential(1)) count++;
    return count;
  }
}

/** Total variation between the weights of two plans, summed over their rows. */
function distance(from: Plan | null, to: Plan | null): number {
  let sum = 0;
  (to?.rows ?? []).forEach((row, index) => {
    const before = new Map(from?.rows[index]?.weights.map(({ engineId, weight }) => [engineId, weight]));
    const after = new Map(row.weights.map(({ engineId, weight }) => [engineId, weight]));
    for (const id of new Set([...before.keys(), ...after.keys()])) {
      sum += Math.abs((before.get(id) ?? 0) - (after.get(id) ?? 0)) / 2;
    }
  });
  return sum;
}

/** Work is one number for each request, so that one replica carries `1 / secondsPerRequest` requests per second. */
function profile(secondsPerRequest: number): Profile {
  return {
    id: 'engine',
    work: { secondsPerRequest, secondsPerUncachedPromptToken: 0, secondsPerOutputToken: 0 },
    ttft: { baseSeconds: 0.05, secondsPerUncachedPromptToken: 0.0002, queueSeconds: 0.05 },
    tbot: { baseSeconds: 0.02, kappa: 0.5 },
    maxFittedRho: 0.95,
  };
}

const fleet: Fleet = {
  frontends: REGIONS.map((id) => ({ id, region: id, listen: '127.0.0.1:10000' })),
  engines: REGIONS.map((region) => ({
    id: `engine-${region}`,
    region,
    models: ['model'],
    labels: {},
    profile: 'engine',
    endpoints: ['127.0.0.1:8000'],
    metrics: { kind: 'none', path: '' },
    healthPath: '/health',
  })),
  pools: [{ id: POOL, model: 'model', needs: [], engineIds: REGIONS.map((region) => `engine-${region}`) }],
  networkSeconds: [
    [0.002, 0.03, 0.08],
    [0.03, 0.002, 0.06],
    [0.08, 0.06, 0.002],
  ],
};
