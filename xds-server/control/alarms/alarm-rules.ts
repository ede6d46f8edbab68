import { lowerMedian, sum } from '../../collections.js';
import type { DatedCertificate } from '../../config/config.js';
import type { Fleet, Frontend, SignalName } from '../../fleet/fleet.js';
import type { Orders } from '../../fleet/operations.js';
import type { PeerView } from '../../peers/peers.js';
import { percent } from '../../percent.js';
import type { Plan } from '../../plan/plan.js';
import type { ReplicaReading } from '../../signals/pages/replica-reading.js';
import type { ProfileDrift } from '../../signals/penalty/outlier-watch.js';
import type { ReplicaHealth } from '../../signals/readiness/replica-health.js';
import type { SignalsView } from '../../signals/signals.js';
import type { EngineTraffic } from '../../signals/usage/recent-traffic.js';
import type { Holder } from '../../sync/snapshot-board.js';
import { EXTENSION_TYPE, type NodeView, type Refusal, shortType, type TypeView } from '../../xds/index.js';

/** Alarms of one kind: a message for each name. */
export type Messages = ReadonlyMap<string, string>;

export function lostPools({ heldPools }: SignalsView, { pools, engines }: Fleet): Messages {
  return new Map(
    heldPools.map((id) => {
      const members = new Set(pools.find((pool) => pool.id === id)?.engineIds);
      const hasReplicas = engines.some((engine) => members.has(engine.id) && engine.endpoints.length > 0);
      if (!hasReplicas) return [id, `pool ${id} has no replicas; its requests are refused`];
      return [id, `all replicas of pool ${id} seem lost; the last ones are kept in use`];
    }),
  );
}

export function silentFrontends(view: SignalsView): Messages {
  return new Map(
    view.silentFrontends.map(({ frontendId }) => [
      frontendId,
      `no Envoy of frontend ${frontendId} reports; its demand is held`,
    ]),
  );
}

export function failingEngines({ vetoes }: SignalsView): Messages {
  return new Map(
    [...vetoes].map(([id, { failed, cutsShort }]) => {
      const seen = cutsShort
        ? `engine ${id} begins answers and ends none: it broke off, or ended in an error, ${failed}`
        : `frontends saw ${failed} ${failed === 1 ? 'failure' : 'failures'} and no answer of engine ${id}`;
      return [id, `${seen}; it is left out for a while`];
    }),
  );
}

/** Fewer answers say nothing. */
const LEAST_ANSWERS = 20;
const MOSTLY = 0.5;
const HARDLY = 0.1;
/** More than one in the minute that traffic is of. */
const SOME_FAILURES_PER_SECOND = 0.025;

/**
 * Engines that answer 4xx to most of what others of their pool serve: one that is at a limit of its own, say. That is no failure
 * to filters, as the requests may be wrong, and such an engine looks quick and idle. And engines that serve nothing at all:
 * from one that lacks the model, or refuses the credentials, filters keep requests away, but for a few that are then tried elsewhere.
 */
export function rejectingEngines(
  { pools, engines }: Fleet,
  trafficOf: (engineId: string) => EngineTraffic,
): Messages {
  const traffic = new Map(engines.map(({ id }) => [id, trafficOf(id)]));
  const serves = (id: string) => {
    const { answers, rejectedShare } = traffic.get(id)!;
    return answers >= LEAST_ANSWERS && (rejectedShare ?? 1) < HARDLY;
  };
  const served = pools.filter(({ engineIds }) => engineIds.some(serves));
  return new Map(
    [...traffic].flatMap(([id, { answers, rejectedShare, failuresPerSecond }]): [string, string][] => {
      const share = rejectedShare ?? 1;
      const servesNothing = share === 1 && failuresPerSecond > SOME_FAILURES_PER_SECOND;
      if (!servesNothing && (answers < LEAST_ANSWERS || share <= MOSTLY)) return [];
      const pool = served.find(({ engineIds }) => engineIds.includes(id));
      if (pool === undefined) return [];
      const others = `others of pool ${pool.id} serve theirs`;
      if (servesNothing) {
        const what = `engine ${id} has served nothing for about a minute, ${others}: what was tried at it failed or was refused`;
        return [[id, `${what}. See what it says to a request with the model and the credentials of clients`]];
      }
      const what = `engine ${id} answers 4xx to ${percent(share, 0)} of requests, ${others}`;
      return [[id, `${what}; it looks quick and idle, and draws requests. Drain it, and see what it says`]];
    }),
  );
}

export function downReplicas(fleet: Fleet, health: (address: string) => ReplicaHealth): Messages {
  return new Map(
    fleet.engines.flatMap((engine) =>
      engine.endpoints.flatMap((address): [string, string][] => {
        const { state, detail } = health(address);
        if (state !== 'down') return [];
        const message = `replica ${address} of engine ${engine.id}: ${detail} (GET ${engine.healthPath})`;
        return [[address, message]];
      }),
    ),
  );
}

export function stuckReplicas({ stuck }: SignalsView, { engines }: Fleet): Messages {
  if (stuck.size === 0) return new Map();
  return new Map(
    engines.flatMap(({ id, endpoints }) =>
      endpoints.flatMap((address): [string, string][] => {
        const seen = stuck.get(address);
        if (seen === undefined) return [];
        const { inFlight, endedElsewhere } = seen;
        const what = `replica ${address} of engine ${id} takes requests and ends none: of ${inFlight} not one, while ${endedElsewhere} of others did`;
        return [
          [
            address,
            `${what}. It is left out until it ends some; see what it does, and restart it if it hangs`,
          ],
        ];
      }),
    ),
  );
}

/** Signals that decide something, or that an operator would look for. */
const ALARMING: readonly SignalName[] = ['running', 'waiting', 'kvUse'];
/** A signal is worth an alarm when it has been missing for this long. */
const MISSING_ALARM_MS = 10_000;
const MOST_REASONS = 3;

interface MissingSignal {
  readonly name: SignalName;
  readonly reason: string;
}

const NONE: readonly MissingSignal[] = [];

/** Asked of every replica at every tick, and nearly always nothing. */
function longMissing(reading: ReplicaReading | undefined, nowMs: number): readonly MissingSignal[] {
  let missing = NONE;
  if (reading === undefined) return missing;
  for (const name of ALARMING) {
    const problem = reading.signals.get(name)?.problem;
    if (problem === undefined || nowMs - problem.sinceMs < MISSING_ALARM_MS) continue;
    missing = [...missing, { name, reason: problem.reason }];
  }
  return missing;
}

/** Signals that are missing for the same reason are told together. */
function told(address: string, missing: readonly MissingSignal[]): readonly string[] {
  const reasons = new Set(missing.map(({ reason }) => reason));
  return [...reasons].map((reason) => {
    const names = missing.filter((signal) => signal.reason === reason).map(({ name }) => name);
    return `${names.join(', ')} of ${address}: ${reason}`;
  });
}

/** Engines of which a signal cannot be read although they are there, with the signal, the replica and why. */
export function missingSignals(
  fleet: Fleet,
  readings: ReadonlyMap<string, ReplicaReading>,
  health: (address: string) => ReplicaHealth,
  nowMs: number,
): Messages {
  return new Map(
    fleet.engines.flatMap(({ id, endpoints, metrics }): [string, string][] => {
      const reasons = endpoints.flatMap((address) => {
        const missing = longMissing(readings.get(address), nowMs);
        return missing.length === 0 || health(address).state === 'down' ? [] : told(address, missing);
      });
      if (reasons.length === 0) return [];
      const shown = reasons.slice(0, MOST_REASONS).join('; ');
      const rest = reasons.length > MOST_REASONS ? `; and ${reasons.length - MOST_REASONS} more` : '';
      const page = `${metrics.port === undefined ? '' : `:${metrics.port}`}${metrics.path}`;
      return [[id, `engine ${id} does not tell its load on ${page} (nothing is assumed): ${shown}${rest}`]];
    }),
  );
}

/** `inFlight`: requests under way at replicas, as far as is known. */
export function penalisedEngines(
  { outliers }: SignalsView,
  { engines }: Fleet,
  inFlight: () => ReadonlyMap<string, number> | undefined,
): Messages {
  return new Map(
    outliers.flatMap(({ engineId, state }): [string, string][] => {
      if (state === 'usual') return [];
      const consequence = {
        penalised: 'it gets less',
        observed: 'it keeps what it has, as penalties are only observed',
        limited: 'it keeps what it has, as too much of its pool is slow or would be lost',
      }[state];
      const slow = `engine ${engineId} answers much slower than its profile says; ${consequence}`;
      const endpoints = engines.find(({ id }) => id === engineId)?.endpoints ?? [];
      return [[engineId, `${slow}${crowdedReplica(endpoints, inFlight())}`]];
    }),
  );
}

/** A replica is looked at first that has so many times as many requests as the middle one of its engine, and a few more. */
const CROWDED = 3;
const A_FEW = 2;

/** Of a slow engine, often a single replica is slow: its requests pile up. */
function crowdedReplica(
  endpoints: readonly string[],
  inFlight: ReadonlyMap<string, number> | undefined,
): string {
  const counts = endpoints.map((address) => inFlight?.get(address) ?? 0);
  const most = Math.max(0, ...counts);
  if (endpoints.length < 2 || most <= CROWDED * (lowerMedian(counts) + A_FEW)) return '';
  return `. Look at replica ${endpoints[counts.indexOf(most)]} first: it has ${most} of its ${sum(counts)} requests under way`;
}

/** Engines whose capacity is taken for other than by their profile. */
export function correctedEngines({ capacities }: SignalsView): Messages {
  return new Map(
    capacities.flatMap(({ engineId, state, share }): [string, string][] => {
      if (state === 'usual') return [];
      const percent = `${Math.round(100 * share)} %`;
      const seen = `engine ${engineId} gets done ${percent} of what its profile says`;
      const consequence =
        state === 'corrected'
          ? 'it is planned with that'
          : 'it is only shown, as penalties are only observed';
      return [[engineId, `${seen}; ${consequence}`]];
    }),
  );
}

export function undiscovered(problems: ReadonlyMap<string, string>): Messages {
  return new Map(
    [...problems].map(([id, problem]) => [
      id,
      `replicas of engine ${id} cannot be found; those known from before stay: ${problem}`,
    ]),
  );
}

/** A measurement that is too far from what is configured to be believed: one of the two is wrong. */
export function doubtfulRoundTrips({ configuredFleet, roundTrips }: SignalsView): Messages {
  const { frontends, engines } = configuredFleet;
  return new Map(
    roundTrips.flatMap((row, frontend) =>
      row.flatMap(({ isLimited, measured, seconds, configuredSeconds }, engine): [string, string][] => {
        if (!isLimited || measured === undefined) return [];
        const from = frontends[frontend]!.id;
        const to = engines[engine]!.id;
        const numbers = `measured as ${ms(measured.seconds)} and configured as ${ms(configuredSeconds)}`;
        return [
          [
            `${from}/${to}`,
            `the round trip from ${from} to ${to} is ${numbers}; plans take ${ms(seconds)}, the nearest to the measurement that is believed. Correct the configuration`,
          ],
        ];
      }),
    ),
  );
}

function ms(seconds: number): string {
  return `${Math.round(1_000 * seconds)} ms`;
}

/** So that nobody forgets what is out of service. */
export function drained({ drains }: Pick<Orders, 'drains'>): Messages {
  return new Map(
    drains.map(({ engineId, address, untilMs }) => {
      const what = address === null ? `engine ${engineId}` : `replica ${address} of engine ${engineId}`;
      return [address ?? engineId, `${what} is drained until ${new Date(untilMs).toISOString()}`];
    }),
  );
}

/** A drift is worth an alarm when it has lasted for this long. */
const DRIFT_ALARM_MS = 60_000;

const DRIFTS: Readonly<Record<ProfileDrift['kind'], { readonly what: string; readonly remedy: string }>> = {
  firstToken: { what: 'the first token', remedy: 'its ttft' },
  whole: { what: 'a whole answer', remedy: 'its ttft and tbot' },
  pace: { what: 'a token', remedy: 'its tbot' },
};

export function driftingProfiles({ drifts }: SignalsView, nowMs: number): Messages {
  return new Map(
    drifts.flatMap(({ profileId, kind, factor, sinceMs }): [string, string][] => {
      if (nowMs - sinceMs < DRIFT_ALARM_MS) return [];
      const message = kind === 'work' ? workDrift(profileId, factor) : timeDrift(profileId, kind, factor);
      return [[kind === 'work' ? `${profileId}/work` : profileId, message]];
    }),
  );
}

function timeDrift(profileId: string, kind: ProfileDrift['kind'], factor: number): string {
  const { what, remedy } = DRIFTS[kind];
  const times = factor.toFixed(1);
  return `${what} of engines with profile ${profileId} takes ${times} times as long as it says; nobody is penalised for it. ${refit(remedy, times)}`;
}

function workDrift(profileId: string, factor: number): string {
  const times = factor.toFixed(2);
  return `a request is ${times} times as much work for its engines as profile ${profileId} says; their capacity is corrected for it. ${refit('all its times', times)} (and requestsPerSecond, where it has that, by ${(1 / factor).toFixed(2)})`;
}

function refit(remedy: string, times: string): string {
  return `Check the sizes of requests, then fit the profile again, or multiply ${remedy} by ${times}`;
}

export function shedding(plan: Plan | null, { classes = [] }: Pick<Fleet, 'classes'>): Messages {
  return new Map(
    (plan?.rows ?? []).flatMap(({ frontendId, poolId, demandRps, shed }): [string, string][] => {
      const some = shed.filter(({ fraction }) => fraction > 0);
      if (some.length === 0) return [];
      const requests = `${demandRps.toFixed(1)} requests/s`;
      const way = `from ${frontendId} to ${poolId}`;
      // What is refused of one class says nothing of the others.
      const parts = some.map(({ priority, fraction }) => `${percent(fraction)} of priority ${priority}`);
      const refused =
        classes.length === 0
          ? `${percent(some[0]!.fraction)} of ${requests} ${way}`
          : `of ${requests} ${way}, ${parts.join(' and ')}`;
      return [[`${frontendId}/${poolId}`, `demand above capacity: ${refused} are refused`]];
    }),
  );
}

export function rejections(nodes: readonly NodeView[]): Messages {
  return new Map(
    nodes.flatMap(({ nodeId, types }) =>
      Object.entries(types).flatMap(([typeUrl, { status, rejection }]): [string, string][] => {
        if (status !== 'rejected' || rejection === null) return [];
        const type = shortType(typeUrl);
        return [[`${nodeId}/${type}`, `Envoy ${nodeId} rejects ${type}: ${rejection.reason}`]];
      }),
    ),
  );
}

export function lackingEnvoys(nodes: readonly NodeView[]): Messages {
  return new Map(
    nodes.flatMap(({ nodeId, shortcomings }): [string, string][] =>
      shortcomings.length === 0 ? [] : [[nodeId, `Envoy ${nodeId}: ${shortcomings.join('; ')}`]],
    ),
  );
}

/** A filter calls twice a second; one that has not for this long does not reach the control server. */
const SILENT_ALARM_MS = 10_000;

/** Envoys that have the filter over xDS, and whose filter does not call; those that call and are not read have an alarm of their own. */
export function silentFilters(
  nodes: readonly NodeView[],
  holders: readonly Pick<Holder, 'nodeId' | 'atMs'>[],
  unread: ReadonlyMap<string, string>,
  frontends: readonly Pick<Frontend, 'id'>[],
  nowMs: number,
): Messages {
  const sinceMs = nowMs - SILENT_ALARM_MS;
  const called = new Set(holders.flatMap(({ nodeId, atMs }) => (atMs > sinceMs ? [nodeId] : [])));
  return new Map(
    nodes.flatMap(({ nodeId, frontendId, connectedAtMs, types }): [string, string][] => {
      const filter = types[EXTENSION_TYPE];
      if (
        filter === undefined ||
        !isHeld(filter) ||
        connectedAtMs > sinceMs ||
        called.has(nodeId) ||
        unread.has(nodeId)
      )
        return [];
      const consequence = 'it refuses all requests, or goes on with a snapshot that it has from before';
      if (!frontends.some(({ id }) => id === frontendId)) {
        const what = `Envoy ${nodeId} is of frontend ${frontendId}, which is not in the configuration any more`;
        return [[nodeId, `${what}: ${consequence}. Stop it, or put the frontend back`]];
      }
      const remedy = 'See whether cluster wardrop-sync in its bootstrap leads to server.sync';
      return [[nodeId, `the filter of Envoy ${nodeId} fetches no snapshots: ${consequence}. ${remedy}`]];
    }),
  );
}

/** An Envoy that comes back with what it should have is sent nothing that it could acknowledge. */
function isHeld({ status, acknowledged }: TypeView): boolean {
  return status === 'synced' || acknowledged !== null;
}

/** Envoys whose filter and the control server do not understand each other; they serve on. */
export function unreadEnvoys(problems: ReadonlyMap<string, string>): Messages {
  return new Map(
    [...problems].map(([nodeId, problem]) => [
      nodeId,
      `the filter of Envoy ${nodeId} goes on with the snapshot that it has: ${problem}. Give it the filter of this version`,
    ]),
  );
}

/** Who would be an Envoy of ours and may not; by host, as such a one may not have said its name. */
export function refusedEnvoys(refusals: readonly Refusal[]): Messages {
  return new Map(
    refusals.map(({ host, reason }) => [
      host,
      `who asks for xDS from ${host} is refused: ${reason}. An Envoy goes on with what it has, and has nothing once it is restarted`,
    ]),
  );
}

/** Certificates are renewed earlier than this before their end: with a third of their time left, as a rule. */
const ENDING_MS = 7 * 86_400_000;
const ENDING_SHARE = 1 / 6;

/** Certificates that are about to end, have ended, or are not valid yet by this machine's clock. */
export function endingCertificates(certificates: readonly DatedCertificate[], nowMs: number): Messages {
  return new Map(
    certificates.flatMap(({ key, fromMs, toMs }): [string, string][] => {
      const leftMs = Math.min(ENDING_MS, ENDING_SHARE * (toMs - fromMs));
      const at = (ms: number) => new Date(ms).toISOString();
      const consequence = 'without a valid one, connections by TLS that need it fail';
      if (nowMs < fromMs) return [[key, `${key} is valid only from ${at(fromMs)} on; ${consequence}`]];
      if (nowMs < toMs - leftMs) return [];
      const when = nowMs < toMs ? `ends at ${at(toMs)}` : `has ended at ${at(toMs)}`;
      return [[key, `${key} ${when}; ${consequence}. Renew the file`]];
    }),
  );
}

const MOST_NAMED = 5;

export function silentPeers(peers: readonly PeerView[]): Messages {
  return new Map(
    peers.flatMap(({ address, isSilent, problem, envoys }): [string, string][] => {
      if (!isSilent) return [];
      const named = envoys.slice(0, MOST_NAMED).join(', ');
      const rest = envoys.length > MOST_NAMED ? ` and ${envoys.length - MOST_NAMED} more` : '';
      const consequence =
        envoys.length === 0
          ? 'no Envoy is missing here'
          : `Envoys that called it have not called here (${named}${rest}): until they do, no engine is found slow or busy with other work`;
      return [
        [
          address,
          `control server ${address} does not answer (${problem ?? 'not asked yet'}); ${consequence}`,
        ],
      ];
    }),
  );
}

/** Control servers that do not agree on what the fleet is. */
export function differingPeers(peers: readonly PeerView[], unfitReason: string | null): Messages {
  return new Map(
    peers.flatMap(({ address, isSilent, leads, hasSameConfig }): [string, string][] => {
      const what = [
        ...(hasSameConfig === false
          ? [
              'has another configuration than this one, so that Envoys which call one and have xDS from the other may get ' +
                'no newer snapshots: give all the same, but for what is under server',
            ]
          : []),
        ...(leads && unfitReason !== null ? [`has a plan that does not fit here: ${unfitReason}`] : []),
      ];
      if (isSilent || what.length === 0) return [];
      return [[address, `control server ${address} ${what.join('; and it ')}`]];
    }),
  );
}
