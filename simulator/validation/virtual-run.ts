import { latencies } from '../demo/measurement.js';
import type { Span } from '../demo/scenario.js';
import {
  clientTurns,
  conversations,
  type DemoFrontend,
  engines,
  frontends,
  rttMs,
  SCALE,
} from '../demo/scenario.js';
import { engineKinds, speedUp } from '../engine/parameters.js';
import { fittedProfile } from '../fitted-profile.js';
import { exampleSizes, type Turn } from '../load/conversations.js';
import { wardrop } from '../policies/wardrop.js';
import { DEFAULT_CLIENT, onePool, type Scenario } from '../scenario.js';
import { World } from '../virtual/world.js';
import { type ConversationSource, shaped } from '../workloads/conversation-source.js';
import { steady } from '../workloads/rate-curve.js';
import type { Observed } from './agreement.js';

/** The demo's world in virtual time, with the very requests that the demo sends and the same salt of their keys' hashes. */
export async function virtualRun({ warmupSeconds, seconds }: Span, salt: string): Promise<Observed> {
  const replicas = engines.map(({ id, region, kind, requestsPerSecond }) => ({
    id,
    engineId: id,
    region,
    parameters: speedUp(engineKinds[kind]!, SCALE),
    profile: kind,
    work: fittedProfile(kind)!.work,
    believedSlowness: 1 / SCALE,
    nominalRps: requestsPerSecond,
  }));
  const scenario: Scenario = {
    id: 'demo',
    about: 'The demo in virtual time.',
    frontends: frontends.map((frontend) => ({
      id: frontend.id,
      region: frontend.id,
      demands: [
        {
          id: frontend.id,
          source: sameTurns(frontend, warmupSeconds + seconds),
          rate: steady(frontend.requestsPerSecond),
          expectedRps: frontend.requestsPerSecond,
          classShares: [1],
        },
      ],
    })),
    engines: replicas,
    ...onePool(replicas),
    rttMs: frontends.map(({ id }) => engines.map((engine) => rttMs[id]![engine.id]!)),
    warmupSeconds,
    seconds,
    settledFrom: warmupSeconds,
    faults: [],
    slo: { ttftSeconds: 0.5, e2eSeconds: 2 },
    // The demo's clients do not come back.
    client: { ...DEFAULT_CLIENT, retries: 0 },
    signals: { periodSeconds: 1, delaySeconds: 0.2 },
  };
  const record = await World.run(scenario, wardrop({ salt }), 1);
  const e2eMs = record.e2eSeconds.map((value) => 1000 * value);
  const ttftMs = record.streamedTtftSeconds.map((value) => 1000 * value);
  return {
    ...latencies(e2eMs, ttftMs),
    cacheHitShare: record.cachedTokens / record.promptTokens,
    flows: frontends.flatMap((frontend, row) =>
      engines.map((engine, column) => ({
        frontend: frontend.id,
        engine: engine.id,
        measuredRps: record.flows[row]![column]! / seconds,
      })),
    ),
  };
}

/** The conversations that the demo's clients of a frontend hold, at their times. */
function sameTurns(frontend: DemoFrontend, seconds: number): ConversationSource {
  const byId = new Map<string, Turn[]>();
  for (const turn of clientTurns(frontend, 'demo', seconds)) {
    const turns = byId.get(turn.conversationId) ?? [];
    turns.push(turn);
    byId.set(turn.conversationId, turns);
  }
  const inOrder = [...byId.values()];
  let begun = 0;
  let given = 0;
  return {
    ...shaped(conversations, exampleSizes),
    arrivals: () => ({ next: () => inOrder[begun++]?.[0]?.atSeconds ?? Number.POSITIVE_INFINITY }),
    conversation: () => inOrder[given++] ?? [],
  };
}
