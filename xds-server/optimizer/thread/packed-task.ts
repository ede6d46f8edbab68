import type { Demand } from '../../fleet/fleet-state.js';
import type { Profile } from '../../profiles/profile.js';
import type { Matrix, RowWeights, SolverEngine, SolverFleet, SolverInput } from '../solution.js';
import { ListPacker, Names, type PackedLists, startOf } from './packed-lists.js';
import type { Task } from './task.js';

/** A task as it goes from the caller's thread to the solver's, without what a solve does not read. */
export interface PackedTask extends Omit<Task, 'input'> {
  readonly input: PackedInput;
}

interface PackedInput extends Omit<SolverInput, 'state' | 'previousWeights' | 'isTrial'> {
  readonly isTrial: boolean;
  readonly atMs: number;
  readonly settledSeconds: number;
  readonly settledSecondsByPool: Readonly<Record<string, number>> | undefined;
  /** All names there are; elsewhere stand their indices. */
  readonly names: readonly string[];
  readonly frontends: Int32Array;
  readonly engines: Int32Array;
  /** By engine. */
  readonly engineProfiles: Int32Array;
  readonly pools: Int32Array;
  /** By pool the engines that may serve it, without values. */
  readonly eligible: PackedLists;
  readonly networkSeconds: Matrix;
  readonly egressDollarsPerRequest: Matrix | undefined;
  readonly states: PackedRecords;
  readonly demands: PackedRecords;
  readonly weightFrontends: Int32Array;
  readonly weightPools: Int32Array;
  /** By row the weights in force. */
  readonly weights: PackedLists;
}

/** Records of the same kind, one after the other: first the names of all, then the numbers. */
interface PackedRecords {
  readonly names: Int32Array;
  readonly numbers: Float64Array;
}

/** Names and numbers of a demand, numbers of an engine's state. */
const DEMAND_NAMES = 3;
const DEMAND_NUMBERS = 8;
const STATE_NUMBERS = 7;

export function packTask({ input, deadlineSeconds, isChecked }: Task): PackedTask {
  return { input: packInput(input), deadlineSeconds, isChecked };
}

/**
 * All objects are written out where they are made, so that those of all solves have the same shapes. Shapes that come out of
 * a message die with the last object that has them, and with them the code that V8 has translated for them.
 */
export function unpackTask({ input, deadlineSeconds, isChecked }: PackedTask): Task {
  return { input: unpackInput(input), deadlineSeconds, isChecked };
}

function packInput({
  state,
  profiles,
  policy,
  referenceMix,
  previousWeights,
  isTrial = false,
}: SolverInput): PackedInput {
  const { fleet, engines, demands, atMs, settledSeconds, settledSecondsByPool } = state;
  const { egressDollarsPerRequest } = fleet;
  const names = new Names();
  return {
    profiles,
    policy,
    referenceMix,
    isTrial,
    atMs,
    settledSeconds,
    settledSecondsByPool,
    frontends: Int32Array.from(fleet.frontends, ({ id }) => names.indexOf(id)),
    engines: Int32Array.from(fleet.engines, ({ id }) => names.indexOf(id)),
    engineProfiles: Int32Array.from(fleet.engines, ({ profile }) => names.indexOf(profile)),
    pools: Int32Array.from(fleet.pools, ({ id }) => names.indexOf(id)),
    eligible: packEligible(fleet, names),
    networkSeconds: packMatrix(fleet.networkSeconds),
    egressDollarsPerRequest: egressDollarsPerRequest && packMatrix(egressDollarsPerRequest),
    states: packStates(engines, names),
    demands: packDemands(demands, names),
    weightFrontends: Int32Array.from(previousWeights, ({ frontendId }) => names.indexOf(frontendId)),
    weightPools: Int32Array.from(previousWeights, ({ poolId }) => names.indexOf(poolId)),
    weights: packWeights(previousWeights, names),
    names: names.list,
  };
}

function unpackInput(packed: PackedInput): SolverInput {
  const { settledSecondsByPool } = packed;
  return {
    state: {
      fleet: unpackFleet(packed),
      atMs: packed.atMs,
      engines: unpackStates(packed),
      demands: unpackDemands(packed),
      settledSeconds: packed.settledSeconds,
      ...(settledSecondsByPool && { settledSecondsByPool }),
    },
    profiles: unpackProfiles(packed),
    policy: packed.policy,
    previousWeights: unpackWeights(packed),
    referenceMix: packed.referenceMix,
    isTrial: packed.isTrial,
  };
}

function packEligible({ pools }: SolverFleet, names: Names): PackedLists {
  const eligible = new ListPacker(names);
  for (const { engineIds } of pools) {
    for (const id of engineIds) eligible.add(id, 0);
    eligible.endList();
  }
  return eligible.finish();
}

function unpackFleet(packed: PackedInput): SolverFleet {
  const { names, eligible, networkSeconds, egressDollarsPerRequest } = packed;
  const frontends: { id: string }[] = [];
  for (const id of packed.frontends) frontends.push({ id: names[id]! });
  const engines: { id: string; profile: string }[] = [];
  for (let at = 0; at < packed.engines.length; at++) {
    engines.push({ id: names[packed.engines[at]!]!, profile: names[packed.engineProfiles[at]!]! });
  }
  const pools: { id: string; engineIds: string[] }[] = [];
  for (let pool = 0; pool < packed.pools.length; pool++) {
    const engineIds: string[] = [];
    for (let at = startOf(eligible, pool); at < eligible.ends[pool]!; at++) {
      engineIds.push(names[eligible.names[at]!]!);
    }
    pools.push({ id: names[packed.pools[pool]!]!, engineIds });
  }
  return {
    frontends,
    engines,
    pools,
    networkSeconds,
    ...(egressDollarsPerRequest && { egressDollarsPerRequest }),
  };
}

/** Rows in one buffer, which is copied once. */
function packMatrix(matrix: Matrix): Matrix {
  let size = 0;
  for (const row of matrix) size += row.length;
  const values = new Float64Array(size);
  const packed: Float64Array[] = [];
  let start = 0;
  for (const row of matrix) {
    values.set(row, start);
    packed.push(values.subarray(start, start + row.length));
    start += row.length;
  }
  return packed;
}

function packStates(states: readonly SolverEngine[], names: Names): PackedRecords {
  const numbers = new Float64Array(STATE_NUMBERS * states.length);
  for (let state = 0; state < states.length; state++) {
    const { replicas, health, ramp, drain, penalty, latencyFactor } = states[state]!;
    let ready = 0;
    for (const replica of replicas) if (replica.ready) ready++;
    numbers.set([ready, replicas.length, health, ramp, drain, penalty, latencyFactor], STATE_NUMBERS * state);
  }
  return { names: Int32Array.from(states, ({ id }) => names.indexOf(id)), numbers };
}

/** Engines with as many replicas, and as many of them ready, share one list of them. */
function unpackStates({ names, states }: PackedInput): SolverEngine[] {
  const lists = new Map<string, SolverEngine['replicas']>();
  const unpacked: SolverEngine[] = [];
  for (let state = 0; state < states.names.length; state++) {
    const first = STATE_NUMBERS * state;
    const ready = states.numbers[first]!;
    const size = states.numbers[first + 1]!;
    const key = `${ready}/${size}`;
    let replicas = lists.get(key);
    if (!replicas) {
      replicas = Array.from({ length: size }, (_, at) => ({ ready: at < ready }));
      lists.set(key, replicas);
    }
    unpacked.push({
      id: names[states.names[state]!]!,
      replicas,
      health: states.numbers[first + 2]!,
      ramp: states.numbers[first + 3]!,
      drain: states.numbers[first + 4]!,
      penalty: states.numbers[first + 5]!,
      latencyFactor: states.numbers[first + 6]!,
    });
  }
  return unpacked;
}

function packDemands(demands: readonly Demand[], names: Names): PackedRecords {
  const packed = new Int32Array(DEMAND_NAMES * demands.length);
  const numbers = new Float64Array(DEMAND_NUMBERS * demands.length);
  for (let at = 0; at < demands.length; at++) {
    const demand = demands[at]!;
    packed.set(
      [names.indexOf(demand.frontendId), names.indexOf(demand.poolId), names.indexOf(demand.source)],
      DEMAND_NAMES * at,
    );
    numbers.set(
      [
        demand.priority,
        demand.requestsPerSecond,
        demand.uncachedPromptTokens,
        demand.promptTokens,
        demand.outputTokens,
        demand.followUpShare,
        demand.turnGapSeconds,
        demand.isUnheard ? 1 : 0,
      ],
      DEMAND_NUMBERS * at,
    );
  }
  return { names: packed, numbers };
}

function unpackDemands({ names, demands }: PackedInput): Demand[] {
  const unpacked: Demand[] = [];
  const { numbers } = demands;
  for (let name = 0, first = 0; name < demands.names.length; name += DEMAND_NAMES, first += DEMAND_NUMBERS) {
    unpacked.push({
      frontendId: names[demands.names[name]!]!,
      poolId: names[demands.names[name + 1]!]!,
      priority: numbers[first]!,
      requestsPerSecond: numbers[first + 1]!,
      uncachedPromptTokens: numbers[first + 2]!,
      promptTokens: numbers[first + 3]!,
      outputTokens: numbers[first + 4]!,
      followUpShare: numbers[first + 5]!,
      turnGapSeconds: numbers[first + 6]!,
      source: names[demands.names[name + 2]!]! as Demand['source'],
      ...(numbers[first + 7]! > 0 && { isUnheard: true }),
    });
  }
  return unpacked;
}

function packWeights(rows: readonly RowWeights[], names: Names): PackedLists {
  const packed = new ListPacker(names);
  for (const { weights } of rows) {
    for (const [engineId, weight] of weights) packed.add(engineId, weight);
    packed.endList();
  }
  return packed.finish();
}

function unpackWeights({ names, weightFrontends, weightPools, weights }: PackedInput): RowWeights[] {
  const rows: RowWeights[] = [];
  for (let row = 0; row < weightFrontends.length; row++) {
    const byEngine = new Map<string, number>();
    for (let at = startOf(weights, row); at < weights.ends[row]!; at++) {
      byEngine.set(names[weights.names[at]!]!, weights.values[at]!);
    }
    rows.push({
      frontendId: names[weightFrontends[row]!]!,
      poolId: names[weightPools[row]!]!,
      weights: byEngine,
    });
  }
  return rows;
}

function unpackProfiles({ profiles }: PackedInput): Map<string, Profile> {
  const unpacked = new Map<string, Profile>();
  for (const [name, { id, work, ttft, tbot, maxFittedRho }] of profiles) {
    const { secondsPerRequest, secondsPerUncachedPromptToken, secondsPerOutputToken } = work;
    const { baseSeconds, queueSeconds } = ttft;
    unpacked.set(name, {
      id,
      work: { secondsPerRequest, secondsPerUncachedPromptToken, secondsPerOutputToken },
      ttft: {
        baseSeconds,
        secondsPerUncachedPromptToken: ttft.secondsPerUncachedPromptToken,
        queueSeconds,
      },
      tbot: { baseSeconds: tbot.baseSeconds, kappa: tbot.kappa },
      maxFittedRho,
    });
  }
  return unpacked;
}
