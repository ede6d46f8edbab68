import { Maglev } from '../../simulator/policies/maglev.js';
import { Random } from '../../simulator/random.js';
import type { BackupShares } from '../../xds-server/optimizer/solution.js';
import { assignBackups } from '../../xds-server/plan/partition/backups.js';
import { evolvePartition, type PreviousPartition } from '../../xds-server/plan/partition/partition.js';
import { quantise } from '../../xds-server/plan/partition/quantise.js';
import { endOf, partsOf } from '../../xds-server/plan/partition/segments.js';
import { HASH_SPACE, type Segment } from '../../xds-server/plan/plan.js';
import { RingHash, type Rival, WeightedRendezvous } from './rivals.js';
import { WeightSteps } from './weight-steps.js';

export interface MovesOptions {
  /** Changes of weights. Default 1000. */
  readonly steps?: number;
  /** Default 1. */
  readonly seed?: number;
  /** Engines of the pool. Default 12: a quarter of 50. */
  readonly engines?: number;
}

export interface MovesResult {
  /** Keys that changed engine over the least that the weights allow (the sum of total variations). */
  readonly movesPerTv: {
    readonly partition: number;
    readonly rendezvous: number;
    readonly maglev: number;
    readonly ringHash: number;
  };
  /** Most segments, backups told apart, that any one engine owned in any step. */
  readonly segmentsPerEngineMax: number;
  /** Most segments of a partition in any step, over the engines of the pool. */
  readonly segmentsPerEngineMeanMax: number;
  /** Mean total variation of a step. */
  readonly tvPerStep: number;
}

/**
 * Lets the same random weights be followed by partitions that a plan carries forward and by stateless hashing. Moves
 * of the partition are exact, those of the rivals are counted on samples of keys or on their tables.
 */
export function measureMoves({ steps = 1000, seed = 1, engines = 12 }: MovesOptions = {}): MovesResult {
  const walk = new WeightSteps(engines, new Random(seed, 'weights'));
  const row = new Row(engines);
  const rivals = {
    rendezvous: new Follower(new WeightedRendezvous(engines)),
    maglev: new Follower(new Maglev(engines)),
    ringHash: new Follower(new RingHash()),
  };
  let before = walk.weights();
  let totalVariation = 0;
  for (let step = 0; step <= steps; step++) {
    const weights = step === 0 ? before : walk.weights();
    totalVariation +=
      weights.reduce((sum, weight, engine) => sum + Math.abs(weight - before[engine]!), 0) / 2;
    row.follow(weights);
    for (const rival of Object.values(rivals)) rival.follow(weights);
    before = weights;
    walk.advance();
  }
  return {
    movesPerTv: {
      partition: row.moved / totalVariation,
      rendezvous: rivals.rendezvous.moved / totalVariation,
      maglev: rivals.maglev.moved / totalVariation,
      ringHash: rivals.ringHash.moved / totalVariation,
    },
    segmentsPerEngineMax: row.segmentsPerEngineMax,
    segmentsPerEngineMeanMax: row.segmentsPerEngineMeanMax,
    tvPerStep: totalVariation / steps,
  };
}

/** A row whose weights and backups follow, as a plan makes them. */
class Row {
  /** Share of the keys that moved, summed over all steps. */
  moved = 0;
  segmentsPerEngineMax = 0;
  segmentsPerEngineMeanMax = 0;
  readonly #ids: readonly string[];
  #previous: PreviousPartition = { segments: [] };

  constructor(engines: number) {
    this.#ids = Array.from({ length: engines }, (_, engine) => `engine-${String(engine).padStart(4, '0')}`);
  }

  follow(weights: readonly number[]): void {
    const lengths = quantise(weights, HASH_SPACE);
    const { runs, former } = evolvePartition(
      this.#previous,
      new Map(
        this.#ids.map((id, engine) => [id, lengths[engine]!] as const).filter(([, length]) => length > 0),
      ),
      this.#ids.length,
    );
    const segments = assignBackups(runs, this.#previous.segments, this.#backups(weights), () => true);
    this.moved += movedShare(this.#previous.segments, segments);
    this.segmentsPerEngineMeanMax = Math.max(
      this.segmentsPerEngineMeanMax,
      segments.length / this.#ids.length,
    );
    for (const id of this.#ids) {
      const count = segments.filter(({ ownerId }) => ownerId === id).length;
      this.segmentsPerEngineMax = Math.max(this.segmentsPerEngineMax, count);
    }
    this.#previous = { segments, former };
  }

  /** Everybody else by weight, as among engines of equal cost. */
  #backups(weights: readonly number[]): BackupShares[] {
    return this.#ids.map((ownerId, owner) => ({
      ownerId,
      shares: this.#ids
        .map((engineId, engine) => ({ engineId, weight: weights[engine]! / (1 - weights[owner]!) }))
        .filter(({ engineId, weight }) => engineId !== ownerId && weight > 0),
    }));
  }
}

/** A stateless map that follows the weights. */
class Follower {
  moved = 0;
  readonly #rival: Rival;
  #before: Uint16Array | undefined;

  constructor(rival: Rival) {
    this.#rival = rival;
  }

  follow(weights: readonly number[]): void {
    const map = this.#rival.map(weights);
    const before = this.#before ?? map;
    this.moved +=
      map.reduce((count, engine, place) => count + (engine === before[place] ? 0 : 1), 0) / map.length;
    this.#before = map;
  }
}

/** Share of the space whose owner differs; 0 when there was no partition before. */
export function movedShare(before: readonly Segment[], after: readonly Segment[]): number {
  if (before.length === 0) return 0;
  let moved = 0;
  after.forEach(({ start, ownerId }, index) => {
    for (const part of partsOf(before, start, endOf(after, index))) {
      if (part.segment.ownerId !== ownerId) moved += part.end - part.start;
    }
  });
  return moved / HASH_SPACE;
}
