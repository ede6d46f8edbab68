import { beforeAll, expect, it, vi } from 'vitest';
import { engineKinds } from '../engine/parameters.js';
import { filterModule } from '../filter-host/build.js';
import { exampleConversations, exampleSizes } from '../load/conversations.js';
import { DEFAULT_CLIENT, type Scenario } from '../virtual/scenario.js';
import { World } from '../virtual/world.js';
import { shaped } from '../workloads/conversation-source.js';
import { steady } from '../workloads/rate-curve.js';
import { wardrop } from './wardrop.js';

const engine = (id: string, kind: string, nominalRps: number) => ({
  id,
  engineId: id,
  region: id,
  parameters: engineKinds[kind]!,
  profile: kind,
  nominalRps,
});

/** Three regions at 89 % of all capacity, where bursts make queues. */
function busy(streamedShare: number): Scenario {
  const source = shaped({ ...exampleConversations, streamedShare }, exampleSizes);
  return {
    id: 'busy',
    about: '',
    frontends: [
      { id: 'west', region: 'west', source, rate: steady(90) },
      { id: 'middle', region: 'middle', source, rate: steady(120) },
      { id: 'east', region: 'east', source, rate: steady(40) },
    ],
    engines: [engine('a', 'sim-100', 100), engine('b', 'sim-100', 100), engine('c', 'sim-80', 80)],
    rttMs: [
      [4, 32, 90],
      [30, 4, 60],
      [88, 62, 4],
    ],
    warmupSeconds: 15,
    seconds: 35,
    settledFrom: 15,
    faults: [],
    slo: { ttftSeconds: 0.5, e2eSeconds: 2 },
    client: DEFAULT_CLIENT,
    expectedRps: [90, 120, 40],
    signals: { periodSeconds: 1, delaySeconds: 1 },
  };
}

vi.setConfig({ testTimeout: 120_000 });
beforeAll(filterModule, 60_000);

it.each([0.5, 1])(
  'a healthy fleet near its capacity is the same with penalties as without, with %d of the answers streamed',
  async (streamedShare) => {
    const records = await Promise.all(
      (['enforce', 'observe'] as const).map((outlierPenalty) =>
        World.run(busy(streamedShare), wardrop({ outlierPenalty }), 1),
      ),
    );
    expect(records[0]!.samples).toEqual(records[1]!.samples);
    expect(records[0]!.ends).toEqual(records[1]!.ends);
  },
);
