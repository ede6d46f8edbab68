import { engineKinds } from '../engine/parameters.js';
import { exampleConversations, exampleSizes } from '../load/conversations.js';
import type { Scenario, ScenarioEngine, ScenarioFrontend } from '../virtual/scenario.js';
import { type ConversationSource, shaped } from '../workloads/conversation-source.js';
import { mooncake } from '../workloads/mooncake.js';
import { day, type RateCurve, steady, steps } from '../workloads/rate-curve.js';

const example = shaped(exampleConversations, exampleSizes);
const streamed = shaped({ ...exampleConversations, streamedShare: 1 }, exampleSizes);

function engine(id: string, kind: string, nominalRps: number): ScenarioEngine {
  return { id, parameters: engineKinds[kind]!, profile: kind, nominalRps };
}

/**
 * An engine for long conversations: blocks that leave the card's memory stay in the host's and come back for free. With
 * gaps of minutes between turns nothing would be found otherwise, whatever the policy.
 */
function withHostCache(id: string, kind: string, nominalRps: number): ScenarioEngine {
  const parameters = engineKinds[kind]!;
  return {
    id,
    parameters: { ...parameters, kvBlocks: 16 * parameters.kvBlocks },
    profile: `${kind}-long`,
    nominalRps,
  };
}

function frontend(id: string, rate: RateCurve, source: ConversationSource = example): ScenarioFrontend {
  return { id, source, rate };
}

/** The example of the documentation: the middle region asks for more than its engine can give. */
const threeRegions: Scenario = {
  id: 'three-regions',
  about: 'Steady demand at 89 % of all capacity; the middle region asks 120 requests/s of an engine for 100.',
  frontends: [frontend('west', steady(90)), frontend('middle', steady(120)), frontend('east', steady(40))],
  engines: [engine('a', 'sim-100', 100), engine('b', 'sim-100', 100), engine('c', 'sim-80', 80)],
  rttMs: [
    [4, 32, 90],
    [30, 4, 60],
    [88, 62, 4],
  ],
  warmupSeconds: 30,
  seconds: 120,
  settledFrom: 30,
  faults: [],
  slo: { ttftSeconds: 0.5, e2eSeconds: 2 },
  clientTimeoutSeconds: 10,
  expectedRps: [90, 120, 40],
  signals: { periodSeconds: 1, delaySeconds: 1 },
};

const relaxed: Scenario = {
  ...threeRegions,
  id: 'relaxed',
  about: 'The same fleet at 60 % of its capacity: every policy is stable, distance and caches decide.',
  frontends: [frontend('west', steady(60)), frontend('middle', steady(80)), frontend('east', steady(28))],
  expectedRps: [60, 80, 28],
};

const failureStory: Scenario = {
  ...threeRegions,
  id: 'failure-story',
  about:
    'Starts from a saturated middle region that was expected to be half as busy; at 80 s demand changes places.',
  frontends: [
    frontend('west', steps([0, 60], [80, 110])),
    frontend('middle', steps([0, 120], [80, 70])),
    frontend('east', steady(40)),
  ],
  seconds: 170,
  settledFrom: 130,
  expectedRps: [60, 60, 40],
};

const dayAcross: Scenario = {
  ...threeRegions,
  id: 'day-across-regions',
  about:
    'Conversations as in Mooncake, demand as on a day (compressed to 40 min, regions a third of it apart, 2.2 from trough to peak).',
  frontends: ['west', 'middle', 'east'].map((id, index) =>
    frontend(id, day(16, 2.2, 2400, index / 3), mooncake()),
  ),
  engines: [
    withHostCache('a', 'sim-100', 22),
    withHostCache('b', 'sim-100', 22),
    withHostCache('c', 'sim-80', 17.7),
  ],
  warmupSeconds: 600,
  seconds: 1800,
  settledFrom: 600,
  slo: { ttftSeconds: 1, e2eSeconds: 4 },
  clientTimeoutSeconds: 30,
  expectedRps: [16, 16, 16],
};

const engineLoss: Scenario = {
  ...relaxed,
  id: 'engine-loss',
  about: 'At 66 % of all capacity engine c dies at 60 s, taking its cache along, and returns at 110 s.',
  frontends: [frontend('west', steady(70)), frontend('middle', steady(75)), frontend('east', steady(30))],
  faults: [{ kind: 'engine-down', engine: 'c', from: 60, until: 110 }],
  seconds: 170,
  settledFrom: 150,
  expectedRps: [70, 75, 30],
};

const slowEngine: Scenario = {
  ...relaxed,
  id: 'slow-engine',
  about:
    'Engine b takes 1.5 times as long for every step from 60 s to 130 s; nothing reports it as unhealthy.',
  faults: [{ kind: 'slow-engine', engine: 'b', slowness: 1.5, from: 60, until: 130 }],
  seconds: 170,
  settledFrom: 150,
};

const demandUnderDeadControl: Scenario = {
  ...relaxed,
  id: 'control-alive',
  about:
    'Demand moves from the middle to the west at 60 s, at 70 % of all capacity, with the control server alive.',
  frontends: [
    frontend('west', steps([0, 60], [60, 90])),
    frontend('middle', steps([0, 100], [60, 70])),
    frontend('east', steady(36)),
  ],
  seconds: 640,
  settledFrom: 120,
  expectedRps: [60, 100, 36],
};

const controlDead: Scenario = {
  ...demandUnderDeadControl,
  id: 'control-dead',
  about:
    'The same with the control server dead from 45 s to 645 s: weights of before serve the demand of after.',
  faults: [{ kind: 'control-down', from: 45, until: 645 }],
};

const herd: Scenario = {
  ...threeRegions,
  id: 'herd',
  about:
    'Six frontends of 40 requests/s each see four engines at about the same distance, at 67 % of all capacity.',
  frontends: Array.from({ length: 6 }, (_, index) => frontend(`f${index}`, steady(40))),
  engines: [
    engine('a', 'sim-100', 100),
    engine('b', 'sim-100', 100),
    engine('c', 'sim-80', 80),
    engine('d', 'sim-80', 80),
  ],
  rttMs: Array.from({ length: 6 }, (_, index) => [10, 12, 14, 16].map((ms) => ms + 2 * index)),
  expectedRps: Array.from({ length: 6 }, () => 40),
};

const flashCrowd: Scenario = {
  ...relaxed,
  id: 'flash-crowd',
  about: 'Demand of the middle region triples for 50 s at 60 s: 15 % more than all engines can give.',
  frontends: [
    frontend('west', steady(60)),
    frontend('middle', steps([0, 80], [60, 235], [110, 80])),
    frontend('east', steady(28)),
  ],
  seconds: 170,
  settledFrom: 150,
};

const allStreamed: Scenario = {
  ...threeRegions,
  id: 'all-streamed',
  about:
    'As three-regions, with every answer streamed: what frontends measure is the time to the first token alone.',
  frontends: threeRegions.frontends.map(({ id, rate }) => frontend(id, rate, streamed)),
};

export const scenarios: readonly Scenario[] = [
  threeRegions,
  relaxed,
  failureStory,
  dayAcross,
  engineLoss,
  slowEngine,
  demandUnderDeadControl,
  controlDead,
  herd,
  flashCrowd,
  allStreamed,
];

/** The same scenario in less time; faults and steps that come later than its end never happen. */
export function shortened(scenario: Scenario, seconds: number): Scenario {
  return { ...scenario, seconds };
}
